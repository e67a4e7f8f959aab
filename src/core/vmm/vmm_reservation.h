/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations and what is mapped in them, for vmm_*.c. All of it is guarded by ct_vmm_lock. */
#ifndef CT_CORE_VMM_RESERVATION_H
#define CT_CORE_VMM_RESERVATION_H

#include "vmm_handle.h"

struct ct_vmm_mapping {
    uint64_t start, size_bytes;
    struct ct_allocated *allocated; /* counts us */
    struct ct_vmm_view *view;       /* of its device; one of the reservation's */
    CUmemAccess_flags access;
};

struct ct_reservation {
    uint64_t start, size_bytes;
    void *reserved; /* NULL: the addresses are a driver's, and go with the view */
    uint64_t reserved_bytes;
    bool refused;                      /* a driver did not give these addresses: they are never asked for again */
    struct ct_reservation_view *views; /* one of each device that has had memory here */
    struct ct_vmm_mapping *mappings;   /* by start; they do not overlap */
    size_t n, capacity;
};

/* The reservation that holds all of [address, address + size_bytes). INVALID_VALUE. */
CUresult ct_vmm_find_reservation_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out);
/* Index of the first mapping that ends behind `address`; n: none. */
size_t ct_vmm_first_behind_locked(const struct ct_reservation *reservation, uint64_t address);
/* Mappings of a reservation that follow each other; they stay where they are until the lock is given back or something is mapped. */
struct ct_vmm_run {
    struct ct_reservation *reservation;
    struct ct_vmm_mapping *mappings;
    size_t count;
};
/* Those that hold [address, address + size_bytes) without a gap. INVALID_VALUE. */
CUresult ct_vmm_find_mapped_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out);
/* The same, but they must be all of the range, and nothing else. */
CUresult ct_vmm_find_whole_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out);
/* The device's view of a reservation, made if there is none. NOT_SUPPORTED: it cannot have memory at these addresses. */
CUresult ct_vmm_find_view_locked(struct ct_reservation *reservation, struct ct_device *device, struct ct_vmm_view **out);

#endif
