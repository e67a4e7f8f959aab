/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a process that shares memory and one that imports it. One request for each part of the memory, and a reply to each before
 * the next request. */
#ifndef CT_CORE_SHARE_SOCKET_H
#define CT_CORE_SHARE_SOCKET_H

#include "core/device/backend.h"

#include <sys/socket.h>
#include <sys/un.h>

/* At the beginning of each message and of each name. */
static const char ct_share_magic[8] = {'C', 'u', 't', 't', 'l', 'e', 'M', '2'};

struct ct_share_request {
    char magic[sizeof ct_share_magic];
    uint64_t id, part;
};

struct ct_share_reply {
    char magic[sizeof ct_share_magic];
    struct ct_memory_share share; /* size_bytes 0: the part does not exist, and no descriptor is sent. Its fd is sent apart */
    uint8_t uuid[16];
};

/* The address of a process's socket, in Linux's abstract name space, where nothing is left when the process ends. */
socklen_t ct_share_address(int32_t pid, uint64_t process, struct sockaddr_un *out);
int64_t ct_share_now_ns(void); /* for deadlines */
/* A socket that keeps the bounds of messages. Its calls do not wait. -1: errno says why. */
int ct_share_socket(void);
/* The process at the other end, which is 0 in another name space of processes. False: it belongs to another user. */
bool ct_share_peer(int fd, pid_t *out);

/* Sends the reply and the descriptor in it (-1: none), without waiting. */
bool ct_share_send(int to, const struct ct_share_reply *reply);
/* Receives a reply, without waiting; the caller owns reply->share.fd (-1: none was received). */
enum ct_share_received { CT_SHARE_REPLY, CT_SHARE_NO_REPLY, CT_SHARE_CLOSED, CT_SHARE_NOTHING_YET };
enum ct_share_received ct_share_receive(int from, struct ct_share_reply *reply);

#endif
