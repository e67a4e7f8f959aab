/* SPDX-License-Identifier: Apache-2.0 */
/* The work of other streams that a stream is known to follow. */
#ifndef CT_CORE_STREAM_ORDER_H
#define CT_CORE_STREAM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* The commands of the table's stream after its point `since` run after `point` of the stream `id`. */
struct ct_order_entry {
    unsigned long long id; /* of the other stream; 0: no entry */
    uint64_t point, since;
};

#define CT_ORDER_ENTRIES 16u

/* The latest waits, one for each other stream. If an entry is evicted the streams merely count as unordered, which is safe. Guarded by
 * the stream's order_lock. */
struct ct_stream_order {
    struct ct_order_entry entries[CT_ORDER_ENTRIES];
    unsigned next;
};

void ct_stream_order_add(struct ct_stream_order *order, const struct ct_order_entry *entry);
/* The stream of `order` waits, from its point `since` on, for `point` of another stream, of whose table `other` is a copy. So it also
 * follows all that `point` follows. */
void ct_stream_order_inherit(struct ct_stream_order *order, const struct ct_stream_order *other, uint64_t point, uint64_t since);
bool ct_stream_order_has(const struct ct_stream_order *order, unsigned long long id, uint64_t point);

#endif
