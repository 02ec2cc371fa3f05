/* SPDX-License-Identifier: MIT */
/* holdfast.h - everything but redis.h and auto.h. */
#ifndef HOLDFAST_H
#define HOLDFAST_H
#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/fetch.h>
#include <holdfast/lease.h>
#include <holdfast/lock.h>
#endif
