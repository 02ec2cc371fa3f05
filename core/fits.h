/* SPDX-License-Identifier: MIT */
/* fits.h - what the answers of our scripts look like, to the last element. Pure. An answer of another form says that the
 * stream of replies is out of step: the next one, whole as it may look, could be the answer to something else. */
#ifndef HFI_FITS_H
#define HFI_FITS_H

#include "pool/command.h"

/* None is asked about errors. */
hfi_command_fits hfi_fits_native, hfi_fits_acquire, hfi_fits_release, hfi_fits_more, hfi_fits_fill, hfi_fits_floor,
    hfi_fits_break, hfi_fits_forget, hfi_fits_look;
hfi_command_fits hfi_fits_renew, hfi_fits_recheck; /* command->expects elements */

#endif
