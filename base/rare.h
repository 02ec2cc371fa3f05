/* SPDX-License-Identifier: MIT */
/* rare.h - marks a rarely called function in a file of hot ones: optimised for size, not for speed. */
#ifndef HFI_RARE_H
#define HFI_RARE_H

#define HFI_RARE __attribute__((cold))

#endif
