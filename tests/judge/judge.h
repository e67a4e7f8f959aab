/* SPDX-License-Identifier: Apache-2.0 */
/* The judges: compilers for real GPUs, used without a GPU. Each kernel of a corpus of PTX is compiled to SPIR-V for a chip, as Cuttle would
 * compile it for that chip, and then compiled by the chip's own compiler; nothing is executed. A judge is one such compiler, configured for
 * one chip. */
#ifndef JUDGE_H
#define JUDGE_H

#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A compiler's statistics of its code. Values that it does not report are NOT_REPORTED. */
#define NOT_REPORTED UINT64_MAX
struct statistics {
    uint64_t lanes; /* lanes of a hardware thread */
    uint64_t instructions;
    uint64_t code_bytes;
    uint64_t vector_registers, scalar_registers; /* registers of a hardware thread; a vector register holds a value for each lane */
    uint64_t latency, inverse_throughput;        /* estimates, in cycles, of a hardware thread (RADV) */
    uint64_t spills, scalar_spills;              /* spilled registers: to memory, and scalar ones to lanes of vector registers */
};

/* A kernel to be judged, with the shape of a possible launch. */
struct exhibit {
    const char *name;
    const struct ptx2spv_kernel *kernel;
    uint32_t block[3];
    uint32_t dynamic_shared_bytes;
};

enum verdict {
    VERDICT_COMPILED,
    VERDICT_REFUSED, /* the compiler rejects it; the reason is written to `why` */
    VERDICT_CRASHED, /* the compiler ends by a signal; `why` has its name */
};

struct judge {
    char name[256]; /* chip and compiler */
    struct ptx2spv_target target;
    bool takes_many; /* it accepts modules of many kernels, for which the statistics have the worst values; the names do not matter */
    bool is_safe;    /* it neither crashes nor leaks: kernels need no processes of their own */
    bool may_lack;   /* the chip lacks features that CUDA requires: our own rejections that name them are not failures */
    enum verdict (*compile)(struct judge *judge, const struct exhibit *exhibit, struct statistics *out, char *why, size_t why_size);
    void *state;
};

/* Initializes a judge. Returns false if it is not available, with the reason in `why`. */
bool judge_open_vulkan(struct judge *judge, char *why, size_t why_size);
/* Compiles a module that is not Cuttle's, with an entry point "main", up to FOREIGN_BUFFERS storage buffers in set 0 and 128 bytes of push
 * constants at most, for subgroups of as many lanes as Cuttle's kernels have. For Vulkan. */
#define FOREIGN_BUFFERS 8
enum verdict judge_compile_foreign(struct judge *judge, const uint32_t *words, size_t n_words, struct statistics *out);
/* device: a name that `ocloc compile --help` lists; library: libocloc.so. */
bool judge_open_ocloc(struct judge *judge, const char *device, const char *library, char *why, size_t why_size);
/* kind: a name from judge_valid.c. */
bool judge_open_validator(struct judge *judge, const char *kind, char *why, size_t why_size);

/* Merges the modules of n kernels into one of *out_n words, which the caller frees; returns NULL if that is not possible. */
uint32_t *merge_modules(const struct ptx2spv_kernel *const *kernels, unsigned n, size_t *out_n);

/* A corpus: distinct PTX texts. */
struct ptx_text {
    char *path, *text;
    size_t length;
};
struct corpus {
    struct ptx_text *texts;
    size_t n, capacity;
};
/* Adds a file, or the *.ptx files of a folder (not of its subfolders) in the order of their names. Returns false if it cannot be read. */
bool corpus_add(struct corpus *corpus, const char *path);
void corpus_finish(struct corpus *corpus);
/* FNV-1a of 64 bits: recognizes texts and modules that occur again. */
uint64_t hash_bytes(const void *bytes, size_t n);

#endif
