/* peer.c - one end of a connection under test, steered line by line.
 *
 * A line on stdin is a command, its answer a line on stdout: "ok ...", or "error TEXT". Numbers are
 * decimal or 0x; regions and queue pairs are known by the small numbers that the driver gives them.
 *
 *   open ADDRESS
 *   region R BYTES [write] [read]            ok va= rkey=       what the other end may do there
 *   load R OFFSET BYTES                      the bytes follow the line
 *   dump R OFFSET BYTES                      ok, and the bytes follow
 *   fill R OFFSET BYTES VALUE
 *   qp Q rc|uc|ud DEPTH [write] [read] [qkey=]   ok qpn=
 *   connect Q name=value ...                 of: address qpn pmtu psn peer_psn timeout retries
 *                                            rnr_retries rnr_timer reads
 *   recv Q ID R OFFSET BYTES
 *   post Q ID KIND R OFFSET BYTES [name=value ...]  KIND: send send_imm write write_imm read;
 *                                            names: va rkey imm to to_qpn to_qkey
 *   poll COUNT TIMEOUT_MS                    ok n=, then n lines id= qpn= status= what= bytes=
 *                                            [imm=]; fewer than COUNT when the time is over
 *   state Q                                  ok state=
 *   count                                    ok name=value ...
 *   drop qp Q | drop region R | drop all
 *
 * The end of stdin is the end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interop/peer_backend.h"

enum { REGIONS = 16, QPS = 64, WORDS = 32, LINE = 1024 };

static struct peer_region regions[REGIONS];
static struct peer_qp qps[QPS];
static bool is_open;

/* ---- stdin and stdout ---- */

static char input[1 << 16];
static size_t input_at, input_end;

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool readable(void)
{
	struct pollfd fd = {0, POLLIN, 0};
	return poll(&fd, 1, 0) > 0;
}

/* Bytes from stdin; the device works on meanwhile. At the end of stdin, the program ends. */
static size_t take(void *bytes, size_t most)
{
	if (input_at == input_end) {
		while (!readable())
			peer_wait(0, 1000);
		ssize_t got = read(0, input, sizeof input);
		if (got <= 0)
			exit(0);
		input_at = 0;
		input_end = (size_t)got;
	}
	size_t bytes_now = input_end - input_at < most ? input_end - input_at : most;
	memcpy(bytes, input + input_at, bytes_now);
	input_at += bytes_now;
	return bytes_now;
}

static void read_line(char line[LINE])
{
	size_t length = 0;
	char c;
	while (take(&c, 1), c != '\n')
		if (length < LINE - 1)
			line[length++] = c;
	line[length] = '\0';
}

__attribute__((format(printf, 1, 2))) static void answer(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* "ok", or the error that a call gave. */
static void answer_result(int result)
{
	if (result)
		answer("error %s", strerror(-result));
	else
		answer("ok");
}

/* ---- words ---- */

static char *words[WORDS];
static unsigned word_count;

static const char *word(unsigned index)
{
	return index < word_count ? words[index] : "";
}

static uint64_t number(unsigned index)
{
	return strtoull(word(index), NULL, 0);
}

static bool has_word(const char *text, unsigned from)
{
	for (unsigned i = from; i < word_count; i++)
		if (!strcmp(words[i], text))
			return true;
	return false;
}

/* The value of name=value among the words; NULL: not named. */
static const char *named(const char *name)
{
	size_t length = strlen(name);
	for (unsigned i = 1; i < word_count; i++)
		if (!strncmp(words[i], name, length) && words[i][length] == '=')
			return words[i] + length + 1;
	return NULL;
}

static uint64_t named_number(const char *name, uint64_t otherwise)
{
	const char *value = named(name);
	return value ? strtoull(value, NULL, 0) : otherwise;
}

static unsigned access_words(unsigned from)
{
	return (has_word("write", from) ? PEER_REMOTE_WRITE : 0) |
	       (has_word("read", from) ? PEER_REMOTE_READ : 0);
}

static struct peer_region *region_word(unsigned index)
{
	uint64_t n = number(index);
	return n < REGIONS && regions[n].memory ? &regions[n] : NULL;
}

static struct peer_qp *qp_word(unsigned index)
{
	uint64_t n = number(index);
	return n < QPS && qps[n].handle ? &qps[n] : NULL;
}

/* region, offset and bytes from three words on; NULL: no such place, and it was said. */
static struct peer_region *place(unsigned first, size_t *offset, size_t *bytes)
{
	struct peer_region *region = region_word(first);
	*offset = number(first + 1);
	*bytes = number(first + 2);
	if (region && *offset <= region->bytes && *bytes <= region->bytes - *offset)
		return region;
	answer("error no such place in a region");
	return NULL;
}

/* ---- the commands ---- */

static void do_open(void)
{
	int result = is_open ? -EBUSY : peer_open(word(1));
	is_open |= !result;
	answer_result(result);
}

static void drop_region(struct peer_region *region)
{
	if (!region->memory)
		return;
	peer_region_remove(region);
	free(region->memory);
	memset(region, 0, sizeof *region);
}

static void drop_qp(struct peer_qp *qp)
{
	if (qp->handle)
		peer_qp_destroy(qp);
	memset(qp, 0, sizeof *qp);
}

static void drop_all(void)
{
	struct peer_done done;
	for (unsigned i = 0; i < QPS; i++)
		drop_qp(&qps[i]);
	for (unsigned i = 0; i < REGIONS; i++)
		drop_region(&regions[i]);
	while (is_open && peer_poll(&done))
		;
}

static void do_drop(void)
{
	if (!strcmp(word(1), "qp") && number(2) < QPS)
		drop_qp(&qps[number(2)]);
	else if (!strcmp(word(1), "region") && number(2) < REGIONS)
		drop_region(&regions[number(2)]);
	else
		drop_all();
	answer("ok");
}

static void do_region(void)
{
	struct peer_region new = {.bytes = number(2), .access = access_words(3)};
	if (number(1) >= REGIONS || regions[number(1)].memory || !new.bytes) {
		answer("error not a free region");
		return;
	}
	new.memory = aligned_alloc(4096, (new.bytes + 4095) & ~(size_t)4095);
	if (!new.memory) {
		answer("error no memory");
		return;
	}
	memset(new.memory, 0, new.bytes);
	int result = peer_region_add(&new);
	if (result) {
		free(new.memory);
		answer_result(result);
		return;
	}
	regions[number(1)] = new;
	answer("ok va=0x%jx rkey=0x%x", (uintmax_t)(uintptr_t) new.memory, new.rkey);
}

static void do_load(void)
{
	size_t offset, bytes;
	struct peer_region *region = place(1, &offset, &bytes);
	while (region && bytes) {
		size_t part = take(region->memory + offset, bytes);
		offset += part;
		bytes -= part;
	}
	if (region)
		answer("ok");
}

static void do_fill(void)
{
	size_t offset, bytes;
	struct peer_region *region = place(1, &offset, &bytes);
	if (!region)
		return;
	memset(region->memory + offset, (int)number(4), bytes);
	answer("ok");
}

static void do_dump(void)
{
	size_t offset, bytes;
	struct peer_region *region = place(1, &offset, &bytes);
	if (!region)
		return;
	answer("ok");
	fwrite(region->memory + offset, 1, bytes, stdout);
}

static void do_qp(void)
{
	static const char *const names[] = {[PEER_RC] = "rc", [PEER_UC] = "uc", [PEER_UD] = "ud"};
	struct peer_qp new = {.depth = (unsigned)number(3), .access = access_words(4)};
	new.qkey = (uint32_t)named_number("qkey", 0);
	while (new.transport <= PEER_UD && strcmp(word(2), names[new.transport]))
		new.transport++;
	if (number(1) >= QPS || qps[number(1)].handle || new.transport > PEER_UD) {
		answer("error not a free queue pair, or no such transport");
		return;
	}
	int result = peer_qp_create(&new);
	if (result) {
		answer_result(result);
		return;
	}
	qps[number(1)] = new;
	answer("ok qpn=0x%x", new.qpn);
}

static void do_connect(void)
{
	struct peer_qp *qp = qp_word(1);
	if (!qp) {
		answer("error no such queue pair");
		return;
	}
	snprintf(qp->peer, sizeof qp->peer, "%s", named("address") ? named("address") : "");
	qp->peer_qpn = (uint32_t)named_number("qpn", 0);
	qp->pmtu = (uint32_t)named_number("pmtu", 1024);
	qp->psn = (uint32_t)named_number("psn", 0);
	qp->peer_psn = (uint32_t)named_number("peer_psn", 0);
	qp->timeout = (uint8_t)named_number("timeout", 14);
	qp->retries = (uint8_t)named_number("retries", 6);
	qp->rnr_retries = (uint8_t)named_number("rnr_retries", 7);
	qp->rnr_timer = (uint8_t)named_number("rnr_timer", 12);
	qp->reads = (uint32_t)named_number("reads", 8);
	answer_result(peer_qp_connect(qp));
}

static void do_recv(void)
{
	size_t offset, bytes;
	struct peer_qp *qp = qp_word(1);
	struct peer_region *region = place(3, &offset, &bytes);
	if (!region)
		return;
	struct peer_work work = {.id = number(2), .region = region, .offset = offset};
	work.bytes = (uint32_t)bytes;
	answer_result(qp ? peer_receive(qp, &work) : -ENOENT);
}

static void do_post(void)
{
	static const char *const kinds[] = {"send", "send_imm", "write", "write_imm", "read"};
	size_t offset, bytes;
	struct peer_qp *qp = qp_word(1);
	struct peer_work work = {.id = number(2)};
	while (work.kind < PEER_KINDS && strcmp(word(3), kinds[work.kind]))
		work.kind++;
	work.region = place(4, &offset, &bytes);
	if (!work.region)
		return;
	work.offset = offset;
	work.bytes = (uint32_t)bytes;
	work.imm = (uint32_t)named_number("imm", 0);
	work.va = named_number("va", 0);
	work.rkey = (uint32_t)named_number("rkey", 0);
	work.to_qpn = (uint32_t)named_number("to_qpn", 0);
	work.to_qkey = (uint32_t)named_number("to_qkey", 0);
	snprintf(work.to, sizeof work.to, "%s", named("to") ? named("to") : "");
	answer_result(qp && work.kind < PEER_KINDS ? peer_post(qp, &work) : -EINVAL);
}

static void do_poll(void)
{
	static struct peer_done done[4096];
	uint64_t most = number(1) < 4096 ? number(1) : 4096, got = 0;
	int64_t end = now_ms() + (int64_t)number(2);
	for (;;) {
		while (got < most && peer_poll(&done[got]))
			got++;
		int64_t left = end - now_ms();
		if (got >= most || left <= 0)
			break;
		peer_wait(-1, left < 20 ? (int)left : 20);
	}
	answer("ok n=%ju", (uintmax_t)got);
	for (uint64_t i = 0; i < got; i++) {
		printf("id=%ju qpn=0x%x status=%d what=%s bytes=%u", (uintmax_t)done[i].id,
		       done[i].qpn, done[i].status, done[i].status ? "none" : done[i].what,
		       done[i].bytes);
		if (done[i].has_imm)
			printf(" imm=0x%x", done[i].imm);
		putchar('\n');
	}
}

static void do_state(void)
{
	struct peer_qp *qp = qp_word(1);
	if (qp)
		answer("ok state=%s", peer_qp_state(qp));
	else
		answer("error no such queue pair");
}

static void do_count(void)
{
	char text[LINE];
	peer_counters(text, sizeof text);
	answer("ok %s", text);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{"open", do_open}, {"region", do_region}, {"load", do_load},	   {"fill", do_fill},
	{"dump", do_dump}, {"qp", do_qp},	  {"connect", do_connect}, {"recv", do_recv},
	{"post", do_post}, {"poll", do_poll},	  {"state", do_state},	   {"count", do_count},
	{"drop", do_drop},
};

static void obey(char *line)
{
	word_count = 0;
	for (char *at = strtok(line, " "); at && word_count < WORDS; at = strtok(NULL, " "))
		words[word_count++] = at;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(word(0), commands[i].name))
			continue;
		if (is_open || commands[i].run == do_open)
			commands[i].run();
		else
			answer("error open first");
		return;
	}
	answer("error no such command");
}

static void finish(void)
{
	drop_all();
	if (is_open)
		peer_close();
}

int main(void)
{
	char line[LINE];
	signal(SIGPIPE, SIG_IGN);
	atexit(finish);
	for (;;) {
		fflush(stdout);
		read_line(line);
		obey(line);
	}
}
