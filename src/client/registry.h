/* registry.h - the folder in which sessions register, so that other programs find them.
 *
 * Model:     a session NAME has three files. NAME.lock is locked while the session lives; a process
 *            that dies, however it dies, lets go of it. NAME.json has facts for programs that do
 *            not connect. NAME.sock is the status socket. A clean end removes all three. A free
 *            lock beside NAME.json means that the session crashed: no process id is trusted.
 * Folder:    $SLUICE_RUN_DIR; else sluice in $XDG_RUNTIME_DIR, where that is a folder of this user;
 *            else /tmp/sluice-UID. It belongs to this user, is no symbolic link, and no other user
 *            can enter it (mode 0700). Clients look into /run/sluice as well.
 * Locks:     of an open file description (fcntl F_OFD_SETLK): unlike with flock(2), a reader can
 *            ask for the lock's state without taking it, so that `sluice ps` never keeps a session
 *            from its name.
 * Threads:   any; one for each claim.
 * Errors:    0 or -errno, and `why` in words. Nothing is logged. */
#ifndef SL_CLIENT_REGISTRY_H
#define SL_CLIENT_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_REGISTRY_NAME = 64,
	SL_REGISTRY_KIND = 16,
	SL_REGISTRY_PATH = 1024,
	SL_REGISTRY_PLACES = 2,
};

struct sl_registry_facts {
	char name[SL_REGISTRY_NAME];
	char kind[SL_REGISTRY_KIND]; /* "session", "detector" */
	int64_t pid;		     /* for people: it may be another process by now */
	uint64_t started_unix_ns;
	uint64_t run; /* its number; 0: none yet */
	char experiment[SL_REGISTRY_PATH], root[SL_REGISTRY_PATH], folder[SL_REGISTRY_PATH];
};

struct sl_claim { /* a name, held */
	int folder, lock;
	char name[SL_REGISTRY_NAME];
	bool crashed;		       /* an earlier session of that name left NAME.json */
	struct sl_registry_facts left; /* of that session */
};

/* 1 to 63 characters of A-Z a-z 0-9 . _ - and no '.' (a hidden file) or '-' (an option of a
 * command) at the beginning. */
bool sl_registry_name_is_valid(const char *name);

/* This user's folder by its name. */
int sl_registry_path(char *path, size_t bytes);
/* Open it. make: create it where it is missing. */
int sl_registry_open(bool make, int *folder, char *why, size_t why_bytes);
/* All folders that exist and may be trusted: this user's, /run/sluice. Returns how many. why:
 * empty, or why this user's is refused. */
unsigned sl_registry_places(int folder[SL_REGISTRY_PLACES], char *why, size_t why_bytes);

/* Take a name until sl_registry_release(). -EEXIST: a session that lives has it. The claim keeps a
 * descriptor of its own of the folder. */
int sl_registry_claim(int folder, const char *name, struct sl_claim *claim, char *why,
		      size_t why_bytes);
/* Write NAME.json, in the place of the one before. */
int sl_registry_publish(const struct sl_claim *claim, const struct sl_registry_facts *facts);
/* A listening, non-blocking socket at NAME.sock; or -errno. */
int sl_registry_listen(const struct sl_claim *claim);
/* Remove the three files and let go of the name. */
void sl_registry_release(struct sl_claim *claim);

/* Whether a living session has that name; its facts. -ENOENT: there is none of that name. */
int sl_registry_look(int folder, const char *name, struct sl_registry_facts *facts, bool *alive);
/* Names of all sessions of a folder, living and crashed, by a function; until it returns false. */
int sl_registry_each(int folder, bool (*each)(void *arg, int folder, const char *name), void *arg);
/* A connected socket, or -errno. */
int sl_registry_connect(int folder, const char *name);

/* facts.c: as JSON, written to a descriptor; read from one. */
int sl_registry_facts_write(int fd, const struct sl_registry_facts *facts);
int sl_registry_facts_read(int fd, struct sl_registry_facts *facts);

#endif
