/* SPDX-License-Identifier: Apache-2.0 */
/* The work of other streams that a stream is known to follow: a short table for each stream. Event waits write it, and memory pools read
 * it: they give memory that one stream freed to another stream that is ordered after the free. */
#include "stream_order.h"

static struct ct_order_entry *entry_of(struct ct_stream_order *order, unsigned long long id)
{
    for (unsigned i = 0; i < CT_ORDER_ENTRIES; i++)
        if (order->entries[i].id == id)
            return &order->entries[i];
    return &order->entries[order->next++ % CT_ORDER_ENTRIES]; /* evicts the oldest */
}

void ct_stream_order_add(struct ct_stream_order *order, const struct ct_order_entry *entry)
{
    struct ct_order_entry *old = entry_of(order, entry->id);

    if (old->id != entry->id || old->point < entry->point)
        *old = *entry;
}

void ct_stream_order_inherit(struct ct_stream_order *order, const struct ct_stream_order *other, uint64_t point, uint64_t since)
{
    for (unsigned i = 0; i < CT_ORDER_ENTRIES; i++) {
        struct ct_order_entry entry = other->entries[i];

        if (!entry.id || entry.since > point) /* that order began only after `point` */
            continue;
        entry.since = since;
        ct_stream_order_add(order, &entry);
    }
}

bool ct_stream_order_has(const struct ct_stream_order *order, unsigned long long id, uint64_t point)
{
    for (unsigned i = 0; i < CT_ORDER_ENTRIES; i++)
        if (order->entries[i].id == id)
            return order->entries[i].point >= point;
    return false;
}
