/* SPDX-License-Identifier: Apache-2.0 */
/* The points at which a kernel in the resumed form is cut (resume.c), and what they share.
 *
 * Every register that lives through `post` needs a phi there with an operand for each point. In kernels with many points, the number of
 * these registers is therefore kept independent of the number of points: a thread waits at one point at a time, so all points share the
 * registers that carry operands to the evaluations and results from them, and coalesce.c merges the kernel's own registers. Points whose
 * instructions then differ in nothing but the values of these registers are a group, which has one posting and one evaluation. That is for
 * Vulkan only: on OpenCL such code sends Intel's compiler for GPUs (IGC 1.0.12504) into an endless recursion. */
#ifndef PTX2SPV_RESUME_POINTS_H
#define PTX2SPV_RESUME_POINTS_H

#include "sync.h"

enum { CT_KIND_ACTIVEMASK = 0x8000, CT_POINT_OPERANDS_MAX = 4, CT_POINT_RESULTS_MAX = 2 };

/* Points with the same posting and evaluation. Without shared registers each point is a group of its own. */
struct ct_point_group {
    struct ct_insn *insn; /* of its points; with shared registers a copy, whose operands and results they are */
    const struct ct_insn *constants[CT_POINT_OPERANDS_MAX]; /* operands that are the same constant at all points: what makes it */
    uint32_t kind;                         /* what a thread posts that waits at one of its points: the number of the kind's first one */
    struct ct_block *posting, *evaluation; /* still empty; posting: NULL unless the points share their code */
};

/* Points whose instructions are the same with the same qualifiers; the lanes of one mask must agree in that. */
struct ct_point_kind {
    uint32_t point;  /* the number of the first of them */
    bool is_counted; /* they are warp instructions of whole warps, so the number of lanes that have arrived says whether all have */
    uint32_t counter;
    ct_value passed; /* a register: the counter's value when all lanes had arrived last */
};

struct ct_point {
    struct ct_insn *insn;
    const struct ct_insn *constants[CT_POINT_OPERANDS_MAX]; /* operands that are constants: what makes them */
    uint32_t group;                                         /* index */
};

struct ct_resume_points {
    struct ct_fn *fn;
    CT_VEC(struct ct_point) all; /* all.v[i] is point number i + 1 */
    CT_VEC(struct ct_point_group) groups;
    CT_VEC(struct ct_point_kind) kinds; /* all but activemask */
    const bool *full;                   /* by value: a mask of all lanes */
    bool shares_code;                   /* points form groups */
    bool shares_registers;              /* there are many points: */
    ct_value operands[CT_POINT_OPERANDS_MAX][CT_W_64 + 1], results[CT_POINT_RESULTS_MAX][CT_W_64 + 1];
};

/* n: how many points there will be. */
void ct_resume_points_init(struct ct_resume_points *points, struct ct_fn *fn, uint32_t n);
/* `writers`: by value, the last instruction before this one that wrote it. */
void ct_resume_points_add(struct ct_resume_points *points, struct ct_insn *insn, const struct ct_insn *const *writers);
/* When all points have been added: numbers the counters, and returns how many there are. */
uint32_t ct_resume_points_number_counters(struct ct_resume_points *points);
/* The kind of a point with such an instruction; NULL: each of them is a kind of its own (activemask). */
struct ct_point_kind *ct_resume_points_kind(const struct ct_resume_points *points, const struct ct_insn *insn);
/* When all points have been added: forms the groups. */
void ct_resume_points_group(struct ct_resume_points *points);

/* Where a thread stops at a point, and where it continues: copies between the point's values and the shared registers, if there are any. */
void ct_resume_points_store(struct ct_cursor *at, const struct ct_resume_points *points, const struct ct_point *point);
void ct_resume_points_load(struct ct_cursor *at, const struct ct_resume_points *points, const struct ct_point *point);
/* The group's instruction, with its constants made here. */
const struct ct_insn *ct_resume_points_insn(struct ct_cursor *at, const struct ct_resume_points *points,
                                            const struct ct_point_group *group);

#endif
