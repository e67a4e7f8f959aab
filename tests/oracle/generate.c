/* SPDX-License-Identifier: Apache-2.0 */
/* Whole programs: features, launch and data, the kernel around its statements, printing. */
#include "generate_tree.h"

#include "../splitmix.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK_BYTES 64 /* at the end of a thread's slot */
#define SUMS_BYTES 64

/* ---- features ---- */

static const struct {
    const char *name, *help;
    bool by_default;
} features[FEATURE_COUNT] = {
#define FEATURE(id, name, by_default, help) {name, help, by_default},
#include "features.def"
};

unsigned generator_default_features(void)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < FEATURE_COUNT; i++)
        bits |= features[i].by_default ? 1u << i : 0;
    return bits;
}

const char *generator_feature_name(unsigned bit)
{
    return features[bit].name;
}

const char *generator_feature_help(unsigned bit)
{
    return features[bit].help;
}

static bool bits_of_name(const char *name, size_t length, unsigned *bits)
{
    if (length == 3 && memcmp(name, "all", 3) == 0) {
        *bits = (1u << FEATURE_COUNT) - 1;
        return true;
    }
    for (unsigned i = 0; i < FEATURE_COUNT; i++) {
        if (strlen(features[i].name) == length && memcmp(features[i].name, name, length) == 0) {
            *bits = 1u << i;
            return true;
        }
    }
    return false;
}

bool generator_parse_features(const char *list, unsigned *bits)
{
    while (*list) {
        const bool off = *list == '-';
        const size_t length = strcspn(list += *list == '-' || *list == '+', ",");
        unsigned named;

        if (length == 4 && memcmp(list, "none", 4) == 0)
            *bits = 0;
        else if (!bits_of_name(list, length, &named))
            return false;
        else
            *bits = off ? *bits & ~named : *bits | named;
        list += length + (list[length] == ',');
    }
    return true;
}

/* ---- text ---- */

static void *check(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "generator: out of memory\n");
    exit(1);
}

void text_append(struct text *text, const char *bytes, size_t n)
{
    if (text->size < text->used + n + 1) {
        text->size = (text->used + n + 1) * 2;
        text->bytes = check(realloc(text->bytes, text->size));
    }
    memcpy(text->bytes + text->used, bytes, n);
    text->used += n;
    text->bytes[text->used] = 0;
}

void text_put(struct text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_append(text, line, strlen(line));
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

/* ---- nodes ---- */

struct node *node_create(struct generator *g, unsigned n_parts)
{
    struct generator_tree *tree = g->tree;
    struct node *node = check(calloc(1, sizeof *node));

    node->id = tree->n_nodes;
    node->n_parts = n_parts;
    if (tree->n_nodes == tree->cap_nodes) {
        tree->cap_nodes = tree->cap_nodes * 2 + 64;
        tree->nodes = check(realloc(tree->nodes, tree->cap_nodes * sizeof(struct node *)));
    }
    tree->nodes[tree->n_nodes++] = node;
    return node;
}

void node_append(struct node ***tail, struct node *node)
{
    **tail = node;
    *tail = &node->next;
}

uint64_t generator_random(struct generator *g)
{
    return splitmix_next(&g->random);
}

/* ---- results: each is a statement of its own, so that shrinking finds the one that differs ---- */

static struct node *result_node(struct generator *g, const char *text)
{
    struct node *node = node_create(g, 1);

    text_append(&node->parts[0].text, text, strlen(text));
    return node;
}

/* Stores a kernel's registers in its slot; floats as bits, but all NaNs as the same one. */
static struct node *kernel_results(struct generator *g)
{
    struct node *first = NULL, **tail = &first;
    char line[512];

    for (unsigned i = 0; i < 12; i++) {
        snprintf(line, sizeof line, "    st.global.b32 [%%slot+%u], %%r%u;\n", 8 + 4 * i, i);
        node_append(&tail, result_node(g, line));
    }
    for (unsigned i = 0; i < 6; i++) {
        snprintf(line, sizeof line, "    st.global.b64 [%%slot+%u], %%q%u;\n", 56 + 8 * i, i);
        node_append(&tail, result_node(g, line));
        snprintf(line, sizeof line, "    st.global.b16 [%%slot+%u], %%h%u;\n", 104 + 2 * i, i);
        node_append(&tail, result_node(g, line));
        snprintf(line, sizeof line, "    selp.u32 %%last, 1, 0, %%p%u;\n    st.global.u8 [%%slot+%u], %%last;\n", i, 116 + i);
        node_append(&tail, result_node(g, line));
    }
    for (unsigned i = 0; i < 6 && g->features & FEATURE_FLOATS; i++) {
        snprintf(line, sizeof line,
                 "    testp.notanumber.f32 %%nan, %%f%u;\n    selp.f32 %%f%u, 0f7fc00000, %%f%u, %%nan;\n    st.global.f32 [%%slot+%u], "
                 "%%f%u;\n",
                 i, i, i, 124 + 4 * i, i);
        node_append(&tail, result_node(g, line));
    }
    for (unsigned i = 0; i < 4 && g->features & FEATURE_FLOATS; i++) {
        snprintf(line, sizeof line,
                 "    testp.notanumber.f64 %%nan, %%d%u;\n    selp.f64 %%d%u, 0d7ff8000000000000, %%d%u, %%nan;\n"
                 "    st.global.f64 [%%slot+%u], %%d%u;\n",
                 i, i, i, 152 + 8 * i, i);
        node_append(&tail, result_node(g, line));
    }
    return first;
}

static struct node *function_results(struct generator *g)
{
    struct node *first = NULL, **tail = &first;
    char line[256];

    for (unsigned i = 0; i < 12; i++) {
        snprintf(line, sizeof line, "    mad.lo.u32 %%last, %%last, 31, %%r%u;\n", i);
        node_append(&tail, result_node(g, line));
    }
    for (unsigned i = 0; i < 6; i++) {
        snprintf(line, sizeof line, "    cvt.u32.u64 %%r0, %%q%u;\n    xor.b32 %%last, %%last, %%r0;\n", i);
        node_append(&tail, result_node(g, line));
    }
    return first;
}

/* ---- creation ---- */

static void grow_function(struct generator *g, unsigned index, unsigned budget)
{
    const bool is_kernel = index == g->tree->n_functions;
    struct context c = {
        .g = g, .function = &g->tree->functions[index], .n_callable = index, .is_kernel = is_kernel, .is_uniform = is_kernel};

    if (g->features & FEATURE_RECURSION)
        c.n_callable = g->tree->n_functions;
    if (g->features & FEATURE_WARPS)
        c.mask = c.function->n_masks = 1;
    g->budget = budget;
    c.function->body = flow_list(&c, is_kernel ? 5 + pick(g, 11) : 2 + pick(g, 4));
    c.function->results = is_kernel ? kernel_results(g) : function_results(g);
}

/* Small blocks, some of them with a last warp that is not full, some with several dimensions. */
static void choose_launch(struct generator *g)
{
    static const uint8_t blocks[][3] = {{32, 1, 1}, {64, 1, 1}, {128, 1, 1}, {1, 1, 1}, {33, 1, 1},  {48, 1, 1}, {16, 4, 1},
                                        {8, 3, 2},  {5, 7, 1},  {96, 1, 1},  {4, 4, 4}, {100, 1, 1}, {32, 2, 2}, {7, 1, 1}};
    static const uint8_t grids[][3] = {{1, 1, 1}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {2, 2, 1}, {1, 2, 2}};
    struct program *program = g->program;
    const uint8_t *block = blocks[pick(g, sizeof blocks / sizeof *blocks)], *grid = grids[pick(g, sizeof grids / sizeof *grids)];

    for (unsigned i = 0; i < 3; i++) {
        program->launch.block[i] = block[i];
        program->launch.grid[i] = grid[i];
    }
    g->tree->n_threads = block[0] * block[1] * block[2];
    g->tree->is_dynamic = pick(g, 3) == 0;
    program->launch.dynamic_shared_bytes = g->tree->is_dynamic ? 16 * g->tree->n_threads : 0;
}

static void fill_bytes(struct generator *g, uint8_t *bytes, size_t n)
{
    static const uint32_t edges[] = {0, 1, 0xffffffff, 0x80000000, 0x7fffffff, 0x3f800000, 0x7f800000, 0x00000001, 0xc0490fdb, 0x0000ffff};

    for (size_t i = 0; i < n; i += 4) {
        const uint32_t word = pick(g, 4) ? (uint32_t)generator_random(g) : edges[pick(g, sizeof edges / sizeof *edges)];

        memcpy(bytes + i, &word, 4);
    }
}

void generator_fill(uint64_t seed, struct generator_data *out)
{
    struct generator g = {.random = ~seed};

    *out = (struct generator_data){0};
    fill_bytes(&g, out->in + GENERATOR_IN_START, GENERATOR_IN_BYTES);
    memcpy(out->in, out->in + GENERATOR_IN_BYTES, GENERATOR_IN_START);
    fill_bytes(&g, out->acc, sizeof out->acc);
    fill_bytes(&g, out->params.table, sizeof out->params.table);
    out->params.a = (uint32_t)generator_random(&g);
    out->params.b = (uint32_t)generator_random(&g);
}

/* Chooses features among those that are allowed, without combinations that are invalid: a barrier must not be reached by fewer threads
 * than exist, unless that is requested. */
static void choose_features(struct generator *g)
{
    const unsigned added = FEATURE_RECURSION | FEATURE_INNER; /* without these, fixed seeds give what they gave before */
    unsigned *bits = &g->features;

    for (unsigned i = 0; i < FEATURE_COUNT; i++) /* a random subset of the allowed features */
        if ((!(added >> i & 1) || *bits >> i & 1) && pick(g, 8) < (i == FEATURE_BIT_FLOATS ? 6 : 2))
            *bits &= ~(1u << i);
    if (*bits & FEATURE_EXITS && *bits & FEATURE_BARRIERS && !(*bits & FEATURE_EXIT_BARRIERS))
        *bits &= pick(g, 3) ? ~(unsigned)FEATURE_EXITS : ~(unsigned)FEATURE_BARRIERS;
    if (*bits & FEATURE_EXITS && *bits & FEATURE_NAMED)
        *bits &= pick(g, 2) ? ~(unsigned)FEATURE_EXITS : ~(unsigned)FEATURE_NAMED;
}

struct program *generator_create(uint64_t seed, unsigned asked)
{
    struct program *program = check(calloc(1, sizeof *program));
    struct generator g = {.program = program, .features = asked, .random = seed * 0xd1342543de82ef95 + 1};

    program->seed = seed;
    program->features = asked;
    program->tree = g.tree = check(calloc(1, sizeof *g.tree));
    choose_features(&g);
    choose_launch(&g);
    generator_fill(seed, &program->data);
    g.tree->n_functions = g.features & FEATURE_CALLS ? pick(&g, MAX_FUNCTIONS + 1) : 0;
    for (unsigned i = 0; i <= g.tree->n_functions; i++)
        grow_function(&g, i, i == g.tree->n_functions ? 28 : g.features & FEATURE_RECURSION ? 4 : 7);
    g.tree->n_labels = g.n_labels;
    g.tree->features = g.features;
    return program;
}

void generator_destroy(struct program *program)
{
    for (unsigned i = 0; program && i < program->tree->n_nodes; i++) {
        for (unsigned p = 0; p < MAX_PARTS; p++)
            text_free(&program->tree->nodes[i]->parts[p].text);
        free(program->tree->nodes[i]);
    }
    if (program) {
        free(program->tree->nodes);
        free(program->tree);
    }
    free(program);
}

size_t generator_out_bytes(const struct generator_launch *launch)
{
    size_t n = GENERATOR_SLOT_BYTES;

    for (unsigned i = 0; i < 3; i++)
        n *= (size_t)launch->grid[i] * launch->block[i];
    return n;
}

/* ---- printing ---- */

static void print_list(struct text *out, const struct node *list)
{
    for (const struct node *node = list; node; node = node->next) {
        for (unsigned i = 0; i < node->n_parts && node->cut != GENERATOR_DROPPED; i++) {
            if (node->cut == GENERATOR_KEPT && node->parts[i].text.bytes)
                text_append(out, node->parts[i].text.bytes, node->parts[i].text.used);
            print_list(out, node->parts[i].children);
        }
    }
}

/* Whether a name occurs in a text, other than as the beginning of a longer one. */
static bool mentions(const struct text *text, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = text->bytes; at && (at = strstr(at, name)); at += length)
        if (strchr("0123456789_abcdefghijklmnopqrstuvwxyz", at[length]) == NULL)
            return true;
    return false;
}

/* One register of every kind that the body uses gets an initial value, from the thread's number or the function's arguments. */
static void print_initial_values(struct text *out, const struct text *body, const char *seed32, const char *seed64)
{
    static const struct {
        const char *name;
        unsigned n;
        const char *format; /* number, then the source */
        bool wide;
    } kinds[] = {
        {"%r", 12, "    mad.lo.u32 %%r%u, %s, %u, %u;\n", false},
        {"%q", 6, "    mad.lo.u64 %%q%u, %s, %u, %u;\n", true},
        {"%h", 6, "    cvt.u16.u32 %%h%u, %s;\n    mad.lo.u16 %%h%u, %%h%u, %u, %u;\n", false},
        {"%f", 6, "    cvt.rn.f32.u32 %%f%u, %s;\n    mul.rn.f32 %%f%u, %%f%u, 0f3e%02x%04x;\n", false},
        {"%d", 4, "    cvt.rn.f64.u32 %%d%u, %s;\n    mul.rn.f64 %%d%u, %%d%u, 0d3fd%02x00000%06x;\n", false},
        {"%p", 6, "    and.b32 %%last, %s, %u;\n    setp.ne.u32 %%p%u, %%last, 0;\n", false},
    };

    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (unsigned i = 0; i < kinds[k].n; i++) {
            const char *source = kinds[k].wide ? seed64 : seed32;
            char name[16];

            snprintf(name, sizeof name, "%s%u", kinds[k].name, i);
            if (!mentions(body, name))
                continue;
            if (k < 2)
                text_put(out, kinds[k].format, i, source, 0x9e3779b1u >> i, i * 0x1234567);
            else if (k == 5)
                text_put(out, kinds[k].format, source, 1u << i, i);
            else
                text_put(out, kinds[k].format, i, source, i, i, i * 21 + 3, i * 977 + 1);
        }
    }
}

static void print_registers(const struct program *program, struct text *out, const struct function *function)
{
    static const char *const names[TEMP_COUNT] = {"b16 %th", "b32 %tr", "b64 %tq", "f32 %tf", "f64 %td", "pred %tp"};
    const unsigned n = program->tree->n_labels + 1;

    text_put(out, "    .reg .b32 %%r<12>, %%last, %%lane;\n    .reg .b64 %%q<6>, %%in, %%mine, %%callee;\n    .reg .b16 %%h<6>;\n");
    text_put(out, "    .reg .f32 %%f<6>;\n    .reg .f64 %%d<4>;\n    .reg .pred %%p<6>, %%nan, %%yes;\n");
    text_put(out, "    .reg .pred %%c<%u>;\n    .reg .b32 %%cr<%u>, %%i<%u>, %%m<%u>;\n", n, n, n, function->n_masks + 1);
    for (unsigned i = 0; i < TEMP_COUNT; i++)
        text_put(out, "    .reg .%s<%u>;\n", names[i], function->temporaries[i] + 1);
}

static void print_locals(struct text *out, const struct text *body)
{
    if (!mentions(body, "locals"))
        return;
    text_put(out, "    .local .align 16 .b8 locals[64];\n");
    for (unsigned i = 0; i < 64; i += 16)
        text_put(out, "    st.local.v4.b32 [locals+%u], {0, %u, 0, %u};\n", i, i * 77, i << 24);
}

static void print_signature(const struct program *program, struct text *out, unsigned index)
{
    const unsigned features = program->features & program->tree->features;

    text_put(out, ".func (.param .b32 result) f%u(.param .b32 a0, .param .b64 a1, .param .b64 a2, .param .b64 a3%s%s)", index,
             features & FEATURE_WARPS ? ", .param .b32 a4" : "", features & FEATURE_RECURSION ? ", .param .b32 a5" : "");
}

static void print_function(const struct program *program, struct text *out, unsigned index)
{
    const struct function *function = &program->tree->functions[index];
    const unsigned features = program->features & program->tree->features;
    struct text body = {0};

    print_list(&body, function->body);
    print_list(&body, function->results);
    print_signature(program, out, index);
    text_put(out, "\n{\n");
    print_registers(program, out, function);
    print_locals(out, &body);
    text_put(out, "    .reg .b32 %%x;\n    .reg .b64 %%y;\n    ld.param.b32 %%x, [a0];\n    ld.param.b64 %%y, [a1];\n");
    text_put(out,
             "    ld.param.b64 %%in, [a2];\n    ld.param.b64 %%mine, [a3];\n    mov.u32 %%lane, %%laneid;\n    setp.eq.u32 %%yes, 0, 0;\n");
    if (features & FEATURE_WARPS)
        text_put(out, "    ld.param.b32 %%m0, [a4];\n");
    if (features & FEATURE_RECURSION)
        text_put(out, "    .reg .b32 %%depth, %%less;\n    .reg .pred %%stop;\n    ld.param.b32 %%depth, [a5];\n");
    print_initial_values(out, &body, "%x", "%y");
    text_put(out, "    mov.u32 %%last, 0;\n");
    if (body.bytes)
        text_append(out, body.bytes, body.used);
    text_put(out, "    st.param.b32 [result], %%last;\n    ret;\n}\n");
    text_free(&body);
}

/* Thread and block numbers, pointers to the thread's slot. */
static void print_places(struct text *out)
{
    text_put(out, "    .reg .b32 %%self, %%n, %%block, %%ua, %%ub, %%x, %%sh, %%ex, %%wx, %%exchange, %%sums;\n");
    text_put(out, "    .reg .b64 %%out, %%slot, %%acc, %%y;\n    .reg .pred %%odd;\n");
    text_put(out, "    ld.param.u64 %%in, [p_in];\n    ld.param.u64 %%out, [p_out];\n    ld.param.u64 %%acc, [p_acc];\n");
    text_put(out, "    ld.param.u32 %%ua, [p_a];\n    ld.param.u32 %%ub, [p_b];\n");
    text_put(
        out,
        "    mov.u32 %%self, %%tid.z;\n    mov.u32 %%n, %%ntid.y;\n    mov.u32 %%x, %%tid.y;\n    mad.lo.u32 %%self, %%self, %%n, %%x;\n");
    text_put(out, "    mov.u32 %%n, %%ntid.x;\n    mov.u32 %%x, %%tid.x;\n    mad.lo.u32 %%self, %%self, %%n, %%x;\n");
    text_put(out, "    mov.u32 %%x, %%ntid.y;\n    mul.lo.u32 %%n, %%n, %%x;\n    mov.u32 %%x, %%ntid.z;\n    mul.lo.u32 %%n, %%n, %%x;\n");
    text_put(out, "    mov.u32 %%block, %%ctaid.z;\n    mov.u32 %%x, %%nctaid.y;\n    mov.u32 %%last, %%ctaid.y;\n");
    text_put(out, "    mad.lo.u32 %%block, %%block, %%x, %%last;\n    mov.u32 %%x, %%nctaid.x;\n    mov.u32 %%last, %%ctaid.x;\n");
    text_put(out, "    mad.lo.u32 %%block, %%block, %%x, %%last;\n    mad.lo.u32 %%x, %%block, %%n, %%self;\n");
    text_put(out, "    mad.wide.u32 %%slot, %%x, %d, %%out;\n    add.u64 %%mine, %%slot, %d;\n", GENERATOR_SLOT_BYTES,
             GENERATOR_SLOT_BYTES - WORK_BYTES);
    text_put(out, "    mov.u32 %%lane, %%laneid;\n    setp.eq.u32 %%yes, 0, 0;\n    and.b32 %%last, %%self, 32;\n    setp.ne.u32 %%odd, "
                  "%%last, 0;\n");
}

/* Lanes of the warp that exist. */
static void print_first_mask(struct text *out, unsigned n_threads)
{
    const unsigned rest = n_threads % 32;

    text_put(out, "    mov.u32 %%m0, -1;\n");
    if (rest)
        text_put(out, "    setp.ge.u32 %%nan, %%self, %u;\n    @%%nan mov.u32 %%m0, 0x%x;\n", n_threads - rest, (1u << rest) - 1);
}

/* Shared memory that the body uses, initialized with zeros. */
static void print_shared(const struct program *program, struct text *out, const struct text *body)
{
    const unsigned n = program->tree->n_threads;
    bool any = false;

    if (mentions(body, "%sh")) {
        any = true;
        if (!program->tree->is_dynamic)
            text_put(out, "    .shared .align 16 .b8 own[%u];\n", 16 * n);
        text_put(out, "    mov.u32 %%sh, own;\n    mad.lo.u32 %%sh, %%self, 16, %%sh;\n    st.shared.v4.b32 [%%sh], {%%self, 0, 1, 2};\n");
    }
    if (mentions(body, "%ex") || mentions(body, "%exchange")) {
        any = true;
        text_put(out, "    .shared .align 4 .b8 exchanged[%u];\n    mov.u32 %%exchange, exchanged;\n", 4 * n);
        text_put(out, "    mad.lo.u32 %%ex, %%self, 4, %%exchange;\n    st.shared.u32 [%%ex], 0;\n");
    }
    if (mentions(body, "%wx"))
        text_put(out, "    .shared .align 4 .b8 passed[%u];\n    mov.u32 %%wx, passed;\n    mad.lo.u32 %%wx, %%self, 4, %%wx;\n", 4 * n);
    if (mentions(body, "%sums")) {
        any = true;
        text_put(out, "    .shared .align 8 .b8 counted[%d];\n    mov.u32 %%sums, counted;\n    setp.eq.u32 %%nan, %%self, 0;\n",
                 SUMS_BYTES);
        for (unsigned i = 0; i < SUMS_BYTES; i += 8)
            text_put(out, "    @%%nan st.shared.b64 [%%sums+%u], %u;\n", i, i * 0x10101);
    }
    if (any && mentions(body, "bar.sync"))
        text_put(out, "    bar.sync 0;\n");
}

static void print_kernel(const struct program *program, struct text *out)
{
    const struct function *function = &program->tree->functions[program->tree->n_functions];
    struct text body = {0};

    print_list(&body, function->body);
    print_list(&body, function->results);
    text_put(out,
             ".visible .entry " GENERATOR_KERNEL "(.param .u64 p_in, .param .u64 p_out, .param .u64 p_acc, .param .u32 p_a, "
             ".param .u32 p_b, .param .align 4 .b8 p_table[%d])\n{\n",
             GENERATOR_TABLE_BYTES);
    print_registers(program, out, function);
    print_places(out);
    print_locals(out, &body);
    print_shared(program, out, &body);
    if (function->n_masks)
        print_first_mask(out, program->launch.block[0] * program->launch.block[1] * program->launch.block[2]);
    text_put(out, "    ld.global.u32 %%x, [%%in];\n    mad.lo.u32 %%x, %%self, 0x9e3779b1, %%x;\n    xor.b32 %%x, %%x, %%block;\n");
    text_put(out, "    mul.wide.u32 %%y, %%x, %%x;\n");
    print_initial_values(out, &body, "%x", "%y");
    text_put(out, "    st.global.u32 [%%slot], 1;\n");
    if (body.bytes)
        text_append(out, body.bytes, body.used);
    text_put(out, "    st.global.u32 [%%slot], 2;\n    ret;\n}\n");
    text_free(&body);
}

char *generator_print(const struct program *program)
{
    struct text out = {0}, functions = {0};

    for (unsigned i = 0; program->tree->features & FEATURE_RECURSION && i < program->tree->n_functions; i++) {
        print_signature(program, &functions, i);
        text_put(&functions, ";\n");
    }
    for (unsigned i = 0; i <= program->tree->n_functions; i++) {
        if (i < program->tree->n_functions)
            print_function(program, &functions, i);
        else
            print_kernel(program, &functions);
    }
    text_put(&out, ".version 7.8\n.target sm_80\n.address_size 64\n");
    if (program->tree->is_dynamic && mentions(&functions, "own"))
        text_put(&out, ".extern .shared .align 16 .b8 own[];\n");
    if (mentions(&functions, "constants"))
        text_put(&out, ".const .align 4 .u32 constants[8] = {1, 0xfffffff0, 77, 0x80000000, 5, 0x3f800000, 0, 65537};\n");
    if (mentions(&functions, "variables"))
        text_put(&out, ".global .align 4 .b8 variables[32] = {1, 2, 3, 250, 128, 127, 0, 9, 8, 7, 6, 5, 255, 254};\n");
    text_append(&out, functions.bytes, functions.used);
    text_free(&functions);
    return out.bytes;
}

/* ---- shrinking ---- */

unsigned generator_statement_count(const struct program *program)
{
    return program->tree->n_nodes;
}

enum generator_cut generator_cut_of(const struct program *program, unsigned statement)
{
    return program->tree->nodes[statement]->cut;
}

void generator_cut(struct program *program, unsigned statement, enum generator_cut cut)
{
    program->tree->nodes[statement]->cut = cut;
}

bool generator_holds_others(const struct program *program, unsigned statement)
{
    const struct node *node = program->tree->nodes[statement];

    for (unsigned i = 0; i < node->n_parts; i++)
        if (node->parts[i].children)
            return true;
    return false;
}
