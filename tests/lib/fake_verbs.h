/* fake_verbs.h - a libibverbs without hardware: devices, memory and queue pairs of this process
 * only, connected by memcpy. It is strict where the real one is strict or silent where that would
 * be found out late: attributes of state changes, keys, ranges, room in queues, what is closed
 * before what. A mistake that real hardware would punish by hanging ends the process with a word.
 *
 * Model:     built as a shared object with the name and the symbol versions of the real library,
 *            so that the loader takes the one for the other. A post is carried out at once where
 *            it can be; RC requests that find no receive wait for one.
 * Threads:   queues may be used, made and closed by several; all else by one at a time. Posting and
 *            polling do not allocate, nor use the locks of libc. */
#ifndef TESTS_LIB_FAKE_VERBS_H
#define TESTS_LIB_FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

/* Give a device, made when it is new, a RoCE v2 address. */
void fake_verbs_add(const char *device, const char *address);
void fake_verbs_set_mtu(const char *device, uint16_t pmtu);
void fake_verbs_set_active(const char *device, bool active); /* tells who listens */
/* It fails, as one that is pulled out: no request completes any longer, no queue can be made. */
void fake_verbs_break(const char *device);
void fake_verbs_forget(void); /* all devices; none may be open */

/* UC packets that get lost, by the number of the queue they go to; NULL: none. */
void fake_verbs_lose(bool (*lose)(void *arg, uint32_t qpn, uint32_t psn), void *arg);

/* How often a reliable queue looks for a peer that is not there, or not ready, before it fails: a
 * few times, unless told otherwise. There is no clock. */
void fake_verbs_retry(unsigned tries);

/* The next call of this name fails with this errno. */
void fake_verbs_fail(const char *call, int error);

/* Contexts, domains, queues, registrations that are open. */
unsigned fake_verbs_objects(void);

/* Receives that are posted on a queue and not used. */
unsigned fake_verbs_receives(uint32_t qpn);

#endif
