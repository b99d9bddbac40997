/* nic.c - the RDMA NIC of rows sluice/verbs/..., and the secret that a share on it asks for. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "bench/share/share.h"
#include "net/net.h"
#include "net/verbs/verbs.h"

enum { SECRET_WORDS = 8 };

struct search {
	const char *address; /* the one that is wanted; "": any */
	struct sl_bench_share_nic *nic;
	bool found, has_v4;
};

static void look(void *arg, const struct sl_verbs_info *info)
{
	static const uint8_t none[SL_VERBS_GID_BYTES];
	struct search *s = arg;
	char text[SL_NET_TEXT_BYTES];
	bool v4;

	if (!info->active || !memcmp(info->gid, none, sizeof(none)))
		return;
	sl_net_format(info->gid, text);
	v4 = !strchr(text, ':');
	if (s->address[0] ? strcmp(text, s->address) : s->found && (s->has_v4 || !v4))
		return;
	s->found = true;
	s->has_v4 = v4;
	snprintf(s->nic->device, sizeof(s->nic->device), "%s", info->name);
	snprintf(s->nic->listen, sizeof(s->nic->listen), v4 ? "%s:0" : "[%s]:0", text);
}

const char *sl_bench_share_nic(const struct sl_bench *bench, struct sl_bench_share_nic *nic)
{
	struct search s = {.address = bench->o.address, .nic = nic};
	const char *why = sl_verbs_unavailable();

	*nic = (struct sl_bench_share_nic){0};
	if (why)
		return why;
	sl_verbs_survey(look, &s);
	if (s.found)
		return NULL;
	return bench->o.address[0] ? "no RDMA NIC has this address (--address; rdma link)"
				   : "no RDMA NIC with a RoCE v2 address and a link";
}

bool sl_bench_share_make_secret(char path[SL_BENCH_PATH])
{
	const char *folder = getenv("TMPDIR");
	FILE *file;
	int fd;

	snprintf(path, SL_BENCH_PATH, "%s/sluice-bench-XXXXXX", folder ? folder : "/tmp");
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		perror(path);
		return false;
	}
	for (unsigned i = 0; i < SECRET_WORDS; i++)
		fprintf(file, "%08x", sl_secret_u32());
	return !fclose(file);
}
