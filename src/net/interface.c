/* interface.c - network interfaces, by address and by place. */
#include "net/interface.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sysfile.h"
#include "net/net.h"

enum { LAYERS = 4 }; /* VLAN on bond on device, and one to spare */

bool sl_net_interface(const char *address, char name[IF_NAMESIZE])
{
	uint8_t wanted[SL_NET_GID_BYTES], has[SL_NET_GID_BYTES];
	union sl_net_address at, own;
	struct ifaddrs *all, *i;
	bool found = false;

	if (!sl_net_numeric(address, 0, &at) || getifaddrs(&all) != 0)
		return false;
	sl_net_gid(&at, wanted);
	for (i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != at.any.sa_family)
			continue;
		memcpy(&own, i->ifa_addr,
		       at.any.sa_family == AF_INET ? sizeof(own.v4) : sizeof(own.v6));
		sl_net_gid(&own, has);
		found = (sl_net_same_host(&at) && (i->ifa_flags & IFF_LOOPBACK)) ||
			!memcmp(has, wanted, sizeof(has));
		if (found)
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* The kernel lists what is below as lower_NAME. */
static bool find_lower(const char *root, const char *name, char lower[IF_NAMESIZE])
{
	char path[512];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s", root, name);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		found = !strncmp(entry->d_name, "lower_", 6) &&
			strlen(entry->d_name + 6) < IF_NAMESIZE;
		if (found)
			memcpy(lower, entry->d_name + 6, strlen(entry->d_name + 6) + 1);
	}
	if (folder)
		closedir(folder);
	return found;
}

void sl_net_interface_device(const char *root, const char *name, char device[IF_NAMESIZE])
{
	snprintf(device, IF_NAMESIZE, "%s", name);
	for (int i = 0; i < LAYERS; i++) {
		char lower[IF_NAMESIZE];

		if (!find_lower(root, device, lower))
			return;
		memcpy(device, lower, sizeof(lower));
	}
}

const char *sl_net_interface_folder(const char *root, const char *device)
{
	char path[512], target[512];
	const char *bus;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/subsystem", root, device);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	bus = strrchr(target, '/');
	return bus && !strcmp(bus, "/virtio") ? "device/.." : "device";
}

int sl_net_interface_node(const char *root, const char *name)
{
	char device[IF_NAMESIZE];
	long long node;

	sl_net_interface_device(root, name, device);
	if (sl_sysfile_number(root, &node, "/sys/class/net/%s/%s/numa_node", device,
			      sl_net_interface_folder(root, device)) &&
	    node >= 0)
		return (int)node;
	return -1;
}
