/* SPDX-License-Identifier: MIT */
/* rare.h - a function that is called rarely, in a file whose others are not: small rather than fast. */
#ifndef HFI_RARE_H
#define HFI_RARE_H

#define HFI_RARE __attribute__((cold))

#endif
