/* SPDX-License-Identifier: MIT */
/* script.c - see script.h. */
#include "pool/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *hfi_script_copy(const struct hfi_script *script, char *to)
{
    for (int i = 0; i < HFI_SCRIPT_PIECES && script->pieces[i].size > 0; i++) {
        memcpy(to, script->text + script->pieces[i].from, script->pieces[i].size);
        to += script->pieces[i].size;
    }
    return to;
}

char *hfi_script_source(const struct hfi_script *script)
{
    char *source = malloc(script->size + 1);
    if (source != NULL)
        *hfi_script_copy(script, source) = 0;
    return source;
}

static const char *line_of(const char *source, long number)
{
    const char *line = source;
    while (line != NULL && --number > 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line;
}

bool hfi_script_command(const struct hfi_script *script, const char *error, char *command, size_t capacity)
{
    static const char mark[] = "@user_script:", call[] = "call('";
    const char *at = strstr(error, mark);
    char *source = at != NULL ? hfi_script_source(script) : NULL;
    const char *line = source != NULL ? line_of(source, strtol(at + strlen(mark), NULL, 10)) : NULL;
    const char *word = line != NULL ? strstr(line, call) : NULL;
    bool names = word != NULL && word < line + strcspn(line, "\n");
    if (names) {
        word += strlen(call);
        (void)snprintf(command, capacity, "%.*s", (int)strcspn(word, "'"), word);
    }
    free(source);
    return names;
}

bool hfi_script_lacks_time(const struct hfi_script *script, const char *error)
{
    /* To all scripts; to this user's, by Redis 6 and 7.0, by later ones and Valkey. */
    static const char *const refusals[] = {"not allowed from script", "The user executing the script can't run",
                                           "ACL failure in script"};
    char command[16];
    const char *refusal = NULL;
    for (size_t i = 0; script->by_key != NULL && i < sizeof refusals / sizeof refusals[0] && refusal == NULL; i++)
        refusal = strstr(error, refusals[i]);
    if (refusal == NULL)
        return false;
    if (strstr(error, "@user_script:") == NULL) /* a service of its own words; none of the other commands is ever refused so */
        return strstr(error, refusals[0]) != NULL;
    return hfi_script_command(script, error, command, sizeof command) && strcmp(command, "TIME") == 0;
}
