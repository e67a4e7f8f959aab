/* SPDX-License-Identifier: Apache-2.0 */
/* A short run of a fuzz target where libFuzzer is not: NAME ROUNDS FILE... hands over each file as it is, then ROUNDS times one of them with
 * some damages. The seed is fixed, so a failure repeats; sanitizers see what is read beyond. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES 65536
#define MAX_FILES 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
    uint8_t bytes[MAX_BYTES];
    size_t size;
};

static struct input files[MAX_FILES], current;
static size_t n_files;

/* xorshift */
static uint64_t state = 0x9e3779b97f4a7c15;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

static void flip_a_bit(void)
{
    if (current.size)
        current.bytes[below(current.size)] ^= (uint8_t)(1u << below(8));
}

/* Sizes and offsets that overflow, or nearly. */
static void put_a_number(void)
{
    static const uint64_t numbers[] = {
        0, 1, 7, 63, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX - 15, UINT64_MAX};
    size_t width = (size_t)1 << below(4);
    uint64_t number = numbers[below(sizeof numbers / sizeof *numbers)];

    if (current.size >= width)
        memcpy(current.bytes + below(current.size - width + 1), &number, width);
}

static void cut_out(void)
{
    size_t at = below(current.size), n = below(below(64) + 1);

    if (n > current.size - at)
        n = current.size - at;
    memmove(current.bytes + at, current.bytes + at + n, current.size - at - n);
    current.size -= n;
}

/* A piece of the input, or of another file, somewhere. */
static void put_a_piece_in(void)
{
    const struct input *from = below(2) ? &current : &files[below(n_files)];
    uint8_t piece[64];
    size_t n = below(sizeof piece), at = below(current.size + 1), start = below(from->size);

    if (n > from->size - start)
        n = from->size - start;
    if (n > MAX_BYTES - current.size)
        return;
    memcpy(piece, from->bytes + start, n);
    memmove(current.bytes + at + n, current.bytes + at, current.size - at);
    memcpy(current.bytes + at, piece, n);
    current.size += n;
}

static void end_as_another(void)
{
    const struct input *other = &files[below(n_files)];
    size_t at = below(current.size + 1), start = below(other->size + 1), n = other->size - start;

    if (n > MAX_BYTES - at)
        n = MAX_BYTES - at;
    memcpy(current.bytes + at, other->bytes + start, n);
    current.size = at + n;
}

static void (*const damages[])(void) = {flip_a_bit, put_a_number, put_a_number, cut_out, put_a_piece_in, end_as_another};

static int read_file(const char *path)
{
    struct input *input = &files[n_files];
    FILE *file = n_files < MAX_FILES ? fopen(path, "rb") : NULL;

    if (!file) {
        fprintf(stderr, "cannot read %s\n", path);
        return 0;
    }
    input->size = fread(input->bytes, 1, MAX_BYTES, file);
    fclose(file);
    n_files++;
    return 1;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

    for (int i = 2; i < argc; i++)
        if (!read_file(argv[i]))
            return 2;
    if (!rounds || !n_files) {
        fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < n_files; i++)
        LLVMFuzzerTestOneInput(files[i].bytes, files[i].size);
    for (unsigned long round = 0; round < rounds; round++) {
        const struct input *file = &files[below(n_files)];

        memcpy(current.bytes, file->bytes, file->size);
        current.size = file->size;
        for (size_t n = 1 + below(4); n > 0; n--)
            damages[below(sizeof damages / sizeof *damages)]();
        LLVMFuzzerTestOneInput(current.bytes, current.size);
    }
    printf("%zu files, %lu damaged ones\n", n_files, rounds);
    return 0;
}
