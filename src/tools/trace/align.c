/* SPDX-License-Identifier: Apache-2.0 */
/* Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986: the basic algorithm. A path from (0, 0) to (n_a, n_b) goes right where an element of
 * a has no partner, down where one of b has none, and diagonally where two are equal. For each number d of such steps `furthest` has, by diagonal (x - y), how
 * far paths with d of them reach; these rows are kept, and the path is read from them backwards. */
#include "align.h"

#include <stdint.h>
#include <stdlib.h>

struct search {
    const unsigned *a, *b;
    long n_a, n_b;
    int32_t *rows[ALIGN_DIFFERENCES_MAX + 1]; /* row d has the diagonals -d .. d */
};

/* The x at which a path with d steps enters diagonal k, by the row before. *out_is_down: its last step left an element of b. */
static long enter(const struct search *search, long d, long k, int *out_is_down)
{
    const int32_t *before = d ? search->rows[d - 1] + (d - 1) : NULL; /* by diagonal */
    const long last = d - 1;

    *out_is_down = 0;
    if (!d)
        return 0;
    *out_is_down = k == -d || (k != d && (k - 1 < -last ? -1 : before[k - 1]) < (k + 1 > last ? -1 : before[k + 1]));
    return *out_is_down ? before[k + 1] : before[k - 1] + 1;
}

/* Finds the furthest paths with d steps. Returns the diagonal that reaches the end, or LONG_MIN. */
static long extend(struct search *search, long d)
{
    int32_t *row = search->rows[d] + d;

    for (long k = -d; k <= d; k += 2) {
        int is_down;
        long x = enter(search, d, k, &is_down);

        while (x < search->n_a && x - k < search->n_b && x - k >= 0 && search->a[x] == search->b[x - k])
            x++;
        row[k] = (int32_t)x;
        if (x >= search->n_a && x - k >= search->n_b)
            return k;
    }
    return INT64_MIN;
}

/* Follows the path that ends in diagonal k of row d back to the beginning. */
static void read_path(const struct search *search, long d, long k, size_t *partners)
{
    for (; d >= 0; d--) {
        const long end = search->rows[d][d + k];
        int is_down;
        const long begin = enter(search, d, k, &is_down);

        for (long x = end; x > begin; x--)
            if (x <= search->n_a && x - k <= search->n_b)
                partners[x - 1] = (size_t)(x - 1 - k);
        k += is_down ? 1 : -1;
    }
}

/* The diagonal of row d that has come furthest. */
static long best_diagonal(const struct search *search, long d)
{
    long best = -d;

    for (long k = -d; k <= d; k += 2)
        if (2L * search->rows[d][d + k] - k > 2L * search->rows[d][d + best] - best && search->rows[d][d + k] <= search->n_a &&
            search->rows[d][d + k] - k <= search->n_b)
            best = k;
    return best;
}

int align(const unsigned *a, size_t n_a, const unsigned *b, size_t n_b, size_t *partners)
{
    struct search *search = calloc(1, sizeof *search);
    long d = 0, k = INT64_MIN;
    int result = search ? 0 : -1;

    for (size_t i = 0; i < n_a; i++)
        partners[i] = ALIGN_NONE;
    if (!search)
        return -1;
    *search = (struct search){.a = a, .b = b, .n_a = (long)n_a, .n_b = (long)n_b};
    for (; d <= ALIGN_DIFFERENCES_MAX; d++) {
        search->rows[d] = malloc((size_t)(2 * d + 1) * sizeof **search->rows);
        if (!search->rows[d]) {
            result = -1;
            break;
        }
        if ((k = extend(search, d)) != INT64_MIN)
            break;
    }
    if (result == 0 && k == INT64_MIN) {
        result = 1;
        d = ALIGN_DIFFERENCES_MAX;
        k = best_diagonal(search, d);
    }
    if (result >= 0)
        read_path(search, d, k, partners);
    for (long i = 0; i <= ALIGN_DIFFERENCES_MAX; i++)
        free(search->rows[i]);
    free(search);
    return result;
}
