/* SPDX-License-Identifier: MIT */
/* holdfast.h - includes everything but redis.h and auto.h, which are opt-in. */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <holdfast/async.h>
#include <holdfast/client.h>
#include <holdfast/election.h>
#include <holdfast/error.h>
#include <holdfast/fetch.h>
#include <holdfast/lease.h>
#include <holdfast/lock.h>
#include <holdfast/multilock.h>
#include <holdfast/semaphore.h>

#endif
