#!/bin/sh
# SPDX-License-Identifier: MIT
# words.sh SOURCE BUILD: code, tests and docs speak one vocabulary, that of the glossary in docs/architecture.md. A word that
# was abolished does not come back, but in the names of perturb marks, by which the simulator's schedules are known: on each
# line, the word as it may not stand there, and the one to use. (The tables of mutants quote what they break.)
set -eu
cd "$1"
failed=0
while read -r old new; do
    if grep -rnwE --include='*.[ch]' --include='*.[ch]pp' --include='*.py' --include='*.md' --exclude='*_mutants.md' "$old" \
        base pool watchdog core include tools modules tests bench examples docs README.md | grep -v 'HFI_PERTURB(' >&2; then
        echo "say $new" >&2
        failed=1
    fi
done <<'END'
hfi_closing\w*|closings           retirement (of a token), hfi_retire_*
hfi_doubt\w*|unclear              in doubt, hfi_in_doubt_*
hfi_fits\w*|hfi_command_fits      schema, validator: hfi_schema_*
hfi_spot|spots?                   slot
hfi_giving                        releaser
hfi_seek\w*|seekers?              acquirer
hfi_ear\w*|hush                   event sink
hfi_hear\w*|overhear\w*           inbound; poll inline
hfi_\w+_tend|tend_\w+|attend_\w+  maintain, watch
board_\w+|boarded|flying          stage, in flight
hfi_hello\w*                      handshake
hfi_place\w*                      endpoint
hfi_blame\w*                      script error
hfi_refused                       lane safety
hfi_dice|dice                     rng
hfi_of                            hfi_container_of
shelf|shelves|beds?|nights        stripe; bit, generation
hfi_spare\w*                      cached, free
let_others\w*|turns_kept          yield
spell_out\w*                      inline_script
claim_wanted|claim_now            requery
other_head                        head_changed
END
grep -q '^## Glossary$' docs/architecture.md || { echo "docs/architecture.md has lost its glossary" >&2; failed=1; }
exit $failed
