/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that answers processes of the same user, which may be broken or hostile: none of them can make another one wait, take more than
 * a few of this process's descriptors, or keep a lock of the library taken. */
#ifndef CT_CORE_SHARE_SERVER_H
#define CT_CORE_SHARE_SERVER_H

#include "share_socket.h"

/* Answers a request. `find` fills in the reply and holds what it needs; `release` is called with what find returned, after the reply was
 * sent. No lock is held in between. */
struct ct_share_answerer {
    void *(*find)(const struct ct_share_request *request, struct ct_share_reply *reply);
    void (*release)(void *found);
};

/* Listens with the socket, which has its address, until the process ends. Returns 0 or an errno. Called once. */
int ct_share_server_start(int socket, const struct ct_share_answerer *answerer);

#endif
