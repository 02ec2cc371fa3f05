/* SPDX-License-Identifier: MIT */
/* scripts.h - the Lua files of core/scripts, embedded by the build, which compares. */
#ifndef HFI_SCRIPTS_H
#define HFI_SCRIPTS_H

#include "pool/script.h"

extern const struct hfi_script hfi_script_acquire, hfi_script_recheck, hfi_script_release, hfi_script_renew,
    hfi_script_more, hfi_script_take_many, hfi_script_fence_floor, hfi_script_fill, hfi_script_forget,
    hfi_script_break, hfi_script_look, hfi_script_downgrade, hfi_script_acquire_shared, hfi_script_acquire_permits,
    hfi_script_release_permits, hfi_script_renew_permits, hfi_script_look_permits, hfi_script_break_permits,
    hfi_script_quarantine;

#endif
