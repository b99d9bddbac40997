/* nic.c - what interfaces count: in /sys/class/net, by ethtool, and how often they interrupt. And
 * what the kernel counts of UDP. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flight/host.h"

enum { ETHTOOL_MOST = 4096, ETHTOOL_KEPT = 48 };

static void put(struct sl_series_ring *ring, const char *interface, const char *name,
		uint64_t value)
{
	sl_series_put(ring, SL_SERIES_COUNTER, "", value, "nic.%s.%s", interface, name);
}

/* ---- ethtool -S ---- */

struct sl_flight_ethtool {
	int fd;
	unsigned n, kept;
	struct ifreq request;
	unsigned index[ETHTOOL_KEPT];
	char name[ETHTOOL_KEPT][ETH_GSTRING_LEN + 1];
	struct ethtool_stats *stats;
};

static bool ask(struct sl_flight_ethtool *e, void *what)
{
	e->request.ifr_data = what;
	return ioctl(e->fd, SIOCETHTOOL, &e->request) == 0;
}

static unsigned count_stats(struct sl_flight_ethtool *e)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = {{.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS}, 0};

	return ask(e, &set) && set.info.sset_mask && set.count <= ETHTOOL_MOST ? set.count : 0;
}

/* Some NICs count thousands of things: those that can explain a loss. */
static bool tells_of_loss(const char *name)
{
	static const char *const words[] = {
		"drop", "discard", "miss", "err", "fifo", "no_buf", "nobuf",   "buf_full",
		"crc",	"pause",   "ecn",  "cnp", "over", "alloc",  "timeout", "out_of"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static bool choose_stats(struct sl_flight_ethtool *e)
{
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + e->n * (size_t)ETH_GSTRING_LEN);
	bool good;

	if (!names)
		return false;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = e->n;
	good = ask(e, names);
	for (unsigned i = 0; good && i < e->n && e->kept < ETHTOOL_KEPT; i++) {
		char *name = e->name[e->kept];

		memcpy(name, names->data + i * (size_t)ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		name[ETH_GSTRING_LEN] = '\0';
		if (tells_of_loss(name))
			e->index[e->kept++] = i;
	}
	free(names);
	return e->kept > 0;
}

struct sl_flight_ethtool *sl_flight_ethtool_open(const char *interface)
{
	struct sl_flight_ethtool *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	snprintf(e->request.ifr_name, sizeof(e->request.ifr_name), "%s", interface);
	e->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	e->n = e->fd < 0 ? 0 : count_stats(e);
	e->stats = calloc(1, sizeof(*e->stats) + e->n * sizeof(e->stats->data[0]));
	if (e->n && e->stats && choose_stats(e))
		return e;
	sl_flight_ethtool_close(e);
	return NULL;
}

void sl_flight_ethtool_close(struct sl_flight_ethtool *e)
{
	if (!e)
		return;
	if (e->fd >= 0)
		close(e->fd);
	free(e->stats);
	free(e);
}

static void sample_ethtool(struct sl_flight_ethtool *e, struct sl_series_ring *ring)
{
	e->stats->cmd = ETHTOOL_GSTATS;
	e->stats->n_stats = e->n;
	/* A driver whose number of counters has changed would write past the end. */
	if (count_stats(e) != e->n || !ask(e, e->stats))
		return;
	for (unsigned i = 0; i < e->kept; i++)
		sl_series_put(ring, SL_SERIES_COUNTER, "", e->stats->data[e->index[i]],
			      "nic.%s.ethtool.%s", e->request.ifr_name, e->name[i]);
}

/* ---- /sys/class/net, /proc ---- */

static void sample_statistics(struct sl_flight_host *h, const char *interface,
			      struct sl_series_ring *ring)
{
	static const char *const names[] = {
		"rx_packets",	    "rx_bytes",		"rx_dropped",	  "rx_errors",
		"rx_missed_errors", "rx_fifo_errors",	"rx_over_errors", "rx_crc_errors",
		"rx_frame_errors",  "rx_length_errors", "rx_nohandler",	  "tx_packets",
		"tx_dropped",	    "tx_errors"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text =
			sl_flight_file(h, "/sys/class/net/%s/statistics/%s", interface, names[i]);

		if (text)
			put(ring, interface, names[i], strtoull(text, NULL, 10));
	}
}

/* "eth1" is in "eth1-rx-0", and not in "eth10-rx-0". */
static bool names(const char *line, const char *interface)
{
	size_t length = strlen(interface);

	for (const char *at = line; (at = strstr(at, interface)); at++)
		if (at[length] < '0' || at[length] > '9')
			return strcmp(interface, "lo") != 0;
	return false;
}

/* Interrupts of lines that name the interface, over all cpus. */
static void sample_interrupts(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	char *text = sl_flight_file(h, "/proc/interrupts"), *line;
	uint64_t sum[SL_FLIGHT_INTERFACES] = {0};
	bool found[SL_FLIGHT_INTERFACES] = {false};

	while (text && (line = sl_flight_line(&text)))
		for (unsigned i = 0; i < h->interfaces; i++) {
			char *at = strchr(line, ':'), *word;

			if (!at || !names(at, h->interface[i]))
				continue;
			found[i] = true;
			at++;
			while ((word = sl_flight_word(&at)) && word[0] >= '0' && word[0] <= '9')
				sum[i] += strtoull(word, NULL, 10);
			break; /* the words of this line are taken apart */
		}
	for (unsigned i = 0; i < h->interfaces; i++)
		if (found[i])
			put(ring, h->interface[i], "interrupts", sum[i]);
}

/* Pairs of lines: "Udp: names", "Udp: numbers". */
static void sample_snmp(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	static const char *const wanted[] = {"ReasmFails",   "ReasmReqds",   "InHdrErrors",
					     "InDiscards",   "InErrors",     "NoPorts",
					     "RcvbufErrors", "InCsumErrors", "MemErrors"};
	char *text = sl_flight_file(h, "/proc/net/snmp"), *names, *numbers;

	while (text && (names = sl_flight_line(&text)) && (numbers = sl_flight_line(&text))) {
		char *kind = sl_flight_word(&names), *name;

		sl_flight_word(&numbers);
		if (!kind || (strcmp(kind, "Ip:") && strcmp(kind, "Udp:")))
			continue;
		kind[strlen(kind) - 1] = '\0';
		while ((name = sl_flight_word(&names))) {
			uint64_t value = sl_flight_number(&numbers, 10);

			for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
				if (!strcmp(name, wanted[i]))
					sl_series_put(ring, SL_SERIES_COUNTER, "", value,
						      "kernel.%s.%s", kind, name);
		}
	}
}

void sl_flight_sample_interfaces(struct sl_flight_host *h, bool all, struct sl_series_ring *ring)
{
	for (unsigned i = 0; i < h->interfaces; i++)
		sample_statistics(h, h->interface[i], ring);
	sample_snmp(h, ring);
	for (unsigned i = 0; all && i < h->interfaces; i++)
		if (h->ethtool[i])
			sample_ethtool(h->ethtool[i], ring);
	if (all && h->interfaces)
		sample_interrupts(h, ring);
}
