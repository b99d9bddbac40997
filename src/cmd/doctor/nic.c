/* nic.c - sluice doctor: what ethtool knows of a NIC, and what it should be. */
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"

/* ---- asking ---- */

static bool ask(int fd, const char *name, void *what)
{
	struct ifreq request = {.ifr_data = what};

	memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1) + 1);
	return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static int ask_flag(int fd, const char *name, uint32_t command)
{
	struct ethtool_value value = {.cmd = command};

	return ask(fd, name, &value) ? value.data != 0 : -1;
}

static unsigned count_features(int fd, const char *name)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = {{.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}, 0};

	return ask(fd, name, &set) && set.info.sset_mask ? set.count : 0;
}

struct features {
	unsigned n;
	struct ethtool_gstrings *names;
	struct ethtool_gfeatures *values;
};

static bool open_features(int fd, const char *name, struct features *f)
{
	f->n = count_features(fd, name);
	f->names = calloc(1, sizeof(*f->names) + f->n * (size_t)ETH_GSTRING_LEN);
	f->values =
		calloc(1, sizeof(*f->values) + (f->n + 31) / 32 * sizeof(f->values->features[0]));
	if (!f->n || !f->names || !f->values)
		return false;
	f->names->cmd = ETHTOOL_GSTRINGS;
	f->names->string_set = ETH_SS_FEATURES;
	f->names->len = f->n;
	f->values->cmd = ETHTOOL_GFEATURES;
	f->values->size = (f->n + 31) / 32;
	return ask(fd, name, f->names) && ask(fd, name, f->values);
}

static void close_features(struct features *f)
{
	free(f->names);
	free(f->values);
}

/* -1 also where it is off and cannot be switched on: nothing to mend. */
static int feature(const struct features *f, const char *name)
{
	for (unsigned i = 0; i < f->n; i++) {
		const struct ethtool_get_features_block *block = &f->values->features[i / 32];
		uint32_t bit = 1u << i % 32;

		if (strncmp((const char *)f->names->data + i * ETH_GSTRING_LEN, name,
			    ETH_GSTRING_LEN))
			continue;
		if (block->active & bit)
			return 1;
		return block->available & bit && !(block->never_changed & bit) ? 0 : -1;
	}
	return -1;
}

static void read_features(int fd, struct sl_nic *nic)
{
	struct features f;

	if (open_features(fd, nic->name, &f)) {
		nic->tx_udp_segmentation = feature(&f, "tx-udp-segmentation");
		nic->rx_udp_gro_forwarding = feature(&f, "rx-udp-gro-forwarding");
		nic->rx_gro_list = feature(&f, "rx-gro-list");
	}
	close_features(&f);
}

static int count_queues(const char *name)
{
	char path[128];
	struct dirent *entry;
	DIR *folder;
	int n = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/queues", name);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		n += !strncmp(entry->d_name, "rx-", 3);
	if (folder)
		closedir(folder);
	return n ? n : -1;
}

void sl_nic_read(const char *name, bool v6, struct sl_nic *nic)
{
	struct ethtool_ringparam ring = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ethtool_rxnfc hash = {.cmd = ETHTOOL_GRXFH,
				     .flow_type = v6 ? UDP_V6_FLOW : UDP_V4_FLOW};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*nic = (struct sl_nic){.rx_ring = -1,
			       .rx_ring_max = -1,
			       .rx_pause = -1,
			       .tx_pause = -1,
			       .gro = -1,
			       .rx_checksum = -1,
			       .tx_udp_segmentation = -1,
			       .rx_udp_gro_forwarding = -1,
			       .rx_gro_list = -1,
			       .hash_ports = -1,
			       .queues = count_queues(name),
			       .v6 = v6};
	snprintf(nic->name, sizeof(nic->name), "%s", name);
	if (fd < 0)
		return;
	if (ask(fd, name, &ring)) {
		nic->rx_ring = ring.rx_pending;
		nic->rx_ring_max = ring.rx_max_pending;
	}
	if (ask(fd, name, &pause)) {
		nic->rx_pause = pause.rx_pause != 0;
		nic->tx_pause = pause.tx_pause != 0;
	}
	if (ask(fd, name, &hash) && hash.data)
		nic->hash_ports = (hash.data & (RXH_L4_B_0_1 | RXH_L4_B_2_3)) != 0;
	nic->gro = ask_flag(fd, name, ETHTOOL_GGRO);
	nic->rx_checksum = ask_flag(fd, name, ETHTOOL_GRXCSUM);
	read_features(fd, nic);
	close(fd);
}

/* ---- judging ---- */

static void check_ring(struct sl_doctor *d, const struct sl_nic *nic)
{
	bool good = nic->rx_ring >= nic->rx_ring_max;

	if (nic->rx_ring < 0 || nic->rx_ring_max <= 0)
		return;
	sl_doctor_say(d, good, "%s: room for %ld packets in its receive ring, at most %ld",
		      nic->name, nic->rx_ring, nic->rx_ring_max);
	if (!good)
		sl_doctor_fix(d, "sudo ethtool -G %s rx %ld", nic->name, nic->rx_ring_max);
}

static void check_pause(struct sl_doctor *d, const struct sl_nic *nic)
{
	bool good = nic->rx_pause && nic->tx_pause;

	if (nic->rx_pause < 0 || nic->tx_pause < 0)
		return;
	sl_doctor_say(d, good, "%s: pause frames rx %s, tx %s", nic->name,
		      nic->rx_pause ? "on" : "off", nic->tx_pause ? "on" : "off");
	if (!good)
		sl_doctor_fix(d, "sudo ethtool -A %s rx on tx on", nic->name);
}

/* A feature by ethtool's name for it. */
static void check_flag(struct sl_doctor *d, const struct sl_nic *nic, int value, int wanted,
		       const char *name, const char *why)
{
	if (value < 0)
		return;
	sl_doctor_say(d, value == wanted, "%s: offload %s is %s%s%s", nic->name, name,
		      value ? "on" : "off", value == wanted ? "" : ": ",
		      value == wanted ? "" : why);
	if (value != wanted)
		sl_doctor_fix(d, "sudo ethtool -K %s %s %s", nic->name, name,
			      wanted ? "on" : "off");
}

/* Every queue pair sends from a port of its own: with it in the hash they use all queues. */
static void check_hash(struct sl_doctor *d, const struct sl_nic *nic)
{
	if (nic->hash_ports < 0 || nic->queues < 2 ||
	    (d->experiment && d->experiment->run.modules < 2))
		return;
	sl_doctor_say(d, nic->hash_ports, "%s: %d receive queues, chosen by %s", nic->name,
		      nic->queues,
		      nic->hash_ports ? "addresses and ports"
				      : "addresses alone: all modules of a source share one");
	if (!nic->hash_ports)
		sl_doctor_fix(d, "sudo ethtool -N %s rx-flow-hash %s sdfn", nic->name,
			      nic->v6 ? "udp6" : "udp4");
}

void sl_doctor_nic(struct sl_doctor *d, const struct sl_nic *nic)
{
	bool verbs = sl_doctor_has_link(d, "verbs"), xdp = sl_doctor_has_link(d, "xdp");
	bool packet = sl_doctor_has_link(d, "packet"), udp = !verbs && !xdp && !packet;

	check_pause(d, nic);
	if (d->front_end) {
		if (!verbs)
			check_flag(d, nic, nic->tx_udp_segmentation, 1, "tx-udp-segmentation",
				   "the cpu cuts messages into packets");
		return;
	}
	if (verbs)
		return; /* its packets never see the kernel */
	check_ring(d, nic);
	check_hash(d, nic);
	if (udp) {
		check_flag(d, nic, nic->gro, 1, "gro", "every packet comes alone");
		check_flag(d, nic, nic->rx_checksum, 1, "rx",
			   "the cpu adds up the checksum of every packet, and GRO does nothing");
	}
	if (packet) {
		check_flag(d, nic, nic->rx_udp_gro_forwarding, 0, "rx-udp-gro-forwarding",
			   "it forgets the identifications of packets");
		check_flag(d, nic, nic->rx_gro_list, 0, "rx-gro-list",
			   "it forgets the identifications of packets");
	}
}
