/* SPDX-License-Identifier: MIT */
/* scripts.h - the Lua files of core/scripts, embedded by the build, which compares. Behind one that asks for the time stands the same
 * with the other clock. */
#ifndef HFI_SCRIPTS_H
#define HFI_SCRIPTS_H

#include "pool/script.h"

extern const struct hfi_script hfi_script_acquire[], hfi_script_recheck[], hfi_script_release[], hfi_script_renew[],
    hfi_script_more[], hfi_script_take_many[], hfi_script_fence_floor[], hfi_script_fill[], hfi_script_forget[],
    hfi_script_break[], hfi_script_look[], hfi_script_downgrade[], hfi_script_acquire_shared[],
    hfi_script_acquire_permits[], hfi_script_release_permits[], hfi_script_renew_permits[], hfi_script_look_permits[],
    hfi_script_break_permits[], hfi_script_quarantine[], hfi_script_forget_tag[];

/* core/scripts/marks: what marks a lock as held in a dialect; core/scripts/dialects: what is made for each of them. */
enum hfi_mark {
    HFI_MARK_COUNTER, HFI_MARK_REDISSON, HFI_MARK_SET, HFI_MARK_SETNX, HFI_MARK_SIGNAL, HFI_MARK_SPRING, HFI_MARK_STRING, HFI_MARK_TOKENS,
    HFI_MARK_KINDS
};
enum hfi_dialect_script {
    HFI_DIALECT_ACQUIRE, HFI_DIALECT_BREAK, HFI_DIALECT_LOOK, HFI_DIALECT_MORE, HFI_DIALECT_RELEASE, HFI_DIALECT_RENEW,
    HFI_DIALECT_SCRIPTS
};
extern const struct hfi_script hfi_dialect_scripts[HFI_MARK_KINDS][HFI_DIALECT_SCRIPTS][2];

#endif
