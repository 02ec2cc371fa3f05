/* SPDX-License-Identifier: MIT */
/* replay.c - feeds all files of a folder to one fuzzer, each from memory of exactly its size. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static void feed(const char *folder, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rbe");
    HFT_MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size + (size == 0));
    HFT_MUST(data != NULL && fread(data, 1, size, file) == size);
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    int count = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (folder == NULL) {
        (void)fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        (void)dprintf(1, "%s\n", entry->d_name); /* the last one said is the culprit */
        feed(argv[1], entry->d_name);
        count++;
    }
    (void)closedir(folder);
    return count > 0 ? 0 : 1;
}
