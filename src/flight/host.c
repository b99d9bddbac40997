/* host.c - what is looked at on this host. */
#include "flight/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/cgroup.h"

enum { TEXT_BYTES = 16 << 10 };

int sl_flight_host_open(struct sl_flight_host *h, const char *root)
{
	memset(h, 0, sizeof(*h));
	h->root = root;
	h->text_bytes = TEXT_BYTES;
	h->text = malloc(h->text_bytes);
	if (!h->text)
		return -ENOMEM;
	if (!sl_cgroup_find(root, "", h->cgroup[0]))
		h->cgroup[0][0] = '\0';
	if (!sl_cgroup_find(root, "cpu", h->cgroup[1]))
		h->cgroup[1][0] = '\0';
	return 0;
}

void sl_flight_host_close(struct sl_flight_host *h)
{
	for (unsigned i = 0; i < h->interfaces; i++)
		sl_flight_ethtool_close(h->ethtool[i]);
	free(h->text);
	memset(h, 0, sizeof(*h));
}

void sl_flight_host_add_interface(struct sl_flight_host *h, const char *name)
{
	for (unsigned i = 0; i < h->interfaces; i++)
		if (!strcmp(h->interface[i], name))
			return;
	if (h->interfaces == SL_FLIGHT_INTERFACES)
		return;
	snprintf(h->interface[h->interfaces], IF_NAMESIZE, "%s", name);
	h->ethtool[h->interfaces] = h->root[0] ? NULL : sl_flight_ethtool_open(name);
	h->interfaces++;
}

void sl_flight_host_add_disk(struct sl_flight_host *h, const char *path)
{
	struct sl_flight_disk *disk = &h->disk[h->disks];

	for (unsigned i = 0; i < h->disks; i++)
		if (!strcmp(h->disk[i].path, path))
			return;
	if (h->disks == SL_FLIGHT_DISKS)
		return;
	snprintf(disk->path, sizeof(disk->path), "%s", path);
	sl_flight_find_disk(h->root, disk);
	h->disks++;
}

void sl_flight_host_sample(struct sl_flight_host *h, bool all, struct sl_series_ring *ring)
{
	sl_flight_sample_threads(h, all, ring);
	sl_flight_sample_cpus(h, all, ring);
	sl_flight_sample_interfaces(h, all, ring);
	sl_flight_sample_disks(h, ring);
}
