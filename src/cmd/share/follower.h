/* follower.h - what the commands that follow a share have in common: how they reach it, what they
 * print of an element, and how arrays become files.
 *
 * Threads:   the command's.
 * Errors:    0 or -errno, logged with what to do. */
#ifndef SL_CMD_SHARE_FOLLOWER_H
#define SL_CMD_SHARE_FOLLOWER_H

#include <stdbool.h>
#include <stdio.h>

#include <sluice/option.h>
#include <sluice/share.h>

#include "picture/picture.h"

/* The options of a command that follows, in a member `reach`. */
struct sl_reach {
	char secret_file[1024], device[64];
	double wait_s;
};

#define SL_REACH_OPTION(type, S, name, ...)                                                     \
	{                                                                                       \
#name, type, offsetof(S, reach.name), sizeof(((S *)0)->reach.name), __VA_ARGS__ \
	}
#define SL_REACH_OPTIONS(S)                                                                        \
	SL_REACH_OPTION(SL_OPTION_F64, S, wait_s, "0", 0, 86400, "s",                              \
			"for the share, where there is none of that name yet", NULL, NULL),        \
		SL_REACH_OPTION(SL_OPTION_STRING, S, secret_file, "", 0, 0, "",                    \
				"of rdma://: file with the secret of the share", NULL, NULL),      \
		SL_REACH_OPTION(SL_OPTION_STRING, S, device, "", 0, 0, "",                         \
				"of rdma://: an RDMA NIC of this host; empty: a UDP socket", NULL, \
				NULL)

int sl_reach_share(const char *url, const struct sl_reach *reach, struct sl_follower **follower);

/* What a call on a follower has returned, in words: logged. */
void sl_follow_failed(const char *url, int err);

/* The array of that name. "": the first that is an image, or -1. -EINVAL: there is none; the names
 * are logged. */
int sl_array_of(const struct sl_share_description *description, const char *name);

/* One thing of an element: bytes of an array, where they are. */
struct sl_taken {
	const struct sl_share_array *array;
	const void *data;
	uint32_t rows; /* of a ragged one */
};
uint64_t sl_taken_bytes(const struct sl_taken *taken);
/* "512 x 1024 <i2 photons"; rows: of the element, not the most. */
void sl_taken_words(const struct sl_taken *taken, char *text, size_t bytes);

int sl_save_npy(const char *path, const struct sl_taken *taken);
/* path "-": to stdout. */
int sl_save_bytes(const char *path, const void *data, uint64_t bytes);
int sl_save_png(const char *path, const struct sl_taken *taken, const struct sl_picture_look *look,
		uint32_t bin);

/* What is known of an element, as words or as members of a JSON object. rate: elements a second;
 * below 0: not known. */
void sl_print_element(const struct sl_share_description *description,
		      const struct sl_follow_element *element, double rate);
void sl_print_element_json(const struct sl_share_description *description,
			   const struct sl_follow_element *element, double rate);
void sl_print_json_text(const char *text);

#endif
