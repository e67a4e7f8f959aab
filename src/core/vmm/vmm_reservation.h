/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations and their mappings; private to vmm_*.c. ct_vmm_lock guards all of it. */
#ifndef CT_CORE_VMM_RESERVATION_H
#define CT_CORE_VMM_RESERVATION_H

#include "vmm_handle.h"

struct ct_vmm_mapping {
    uint64_t start, size_bytes;
    struct ct_allocated *allocated; /* its count of mappings includes this one */
    struct ct_vmm_view *view;       /* of the memory's device; one of the reservation's views */
    CUmemAccess_flags access;
    const void *closer; /* identifies the call that waits for its users, to unmap it or to take access away; NULL: none. Copies fail, and
                           so do other such calls */
};

struct ct_reservation {
    uint64_t start, size_bytes;
    void *reserved; /* NULL: the addresses belong to a driver, and are freed with the view */
    uint64_t reserved_bytes;
    bool refused;                      /* a driver refused these addresses, and is not tried again */
    struct ct_reservation_view *views; /* one for each device whose memory has been mapped here */
    struct ct_vmm_mapping *mappings;   /* sorted by start; they do not overlap */
    size_t n, capacity;
};

/* Finds the reservation that contains all of [address, address + size_bytes). INVALID_VALUE. */
CUresult ct_vmm_find_reservation_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out);
/* Index of the first mapping that ends after `address`; n: none. */
size_t ct_vmm_first_ending_after_locked(const struct ct_reservation *reservation, uint64_t address);
/* Adjacent mappings of a reservation; the array is valid until the lock is released or memory is mapped. */
struct ct_vmm_run {
    struct ct_reservation *reservation;
    struct ct_vmm_mapping *mappings;
    size_t count;
};
/* Finds the mappings that cover [address, address + size_bytes) without a gap. INVALID_VALUE. */
CUresult ct_vmm_find_mapped_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out);
/* The same, but the mappings must cover exactly the range. */
CUresult ct_vmm_find_whole_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out);
/* Returns the device's view of a reservation, which is created if needed. NOT_SUPPORTED: the device cannot map memory at these
 * addresses. */
CUresult ct_vmm_find_view_locked(struct ct_reservation *reservation, struct ct_device *device, struct ct_vmm_view **out);

#endif
