/* judge.c - the frames of a batch go to the script's processes, and their verdicts come back.
 *
 * Threads:   finish() of one batch at a time.
 * Cost:      a copy of the arrays for each frame, which is made while processes are at work; two
 *            system calls of this thread for a frame, and one more where it has to wait. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "stage/python/python.h"

struct work { /* on a batch */
	struct sl_python_engine *e;
	struct sl_batch *batch;
	uint32_t next;	  /* the frame whose turn comes; batch->frames: none */
	uint32_t given;	  /* frames that processes have, and whose time is not over */
	bool filled;	  /* the next frame is in the spare place */
	uint64_t head_ns; /* since when its time runs; 0: it does not */
};

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- a frame ---- */

static bool is_shown(const struct sl_python_engine *e, const struct sl_frame *frame)
{
	return !(frame->flags & SL_FRAME_DARK) &&
	       (e->options->look == SL_PYTHON_OF_ALL || sl_frame_is_kept(frame));
}

static void put_results(const struct sl_python_engine *e, struct sl_frame *frame,
			enum sl_python_judged judged, const struct sl_python_answer *answer)
{
	double *number = e->numbers ? frame->result[e->result + 1].host : NULL;

	*(uint8_t *)frame->result[e->result].host = (uint8_t)judged;
	for (uint32_t i = 0; i < e->numbers; i++)
		number[i] = answer && i < answer->numbers ? answer->number[i] : NAN;
}

/* Kept as the stages before it left it. */
static void leave_unjudged(struct work *w, uint32_t f)
{
	put_results(w->e, w->batch->frame[f], SL_PYTHON_UNJUDGED, NULL);
	count(&w->e->counts.unjudged);
}

static void judge(struct work *w, uint32_t f, const struct sl_python_answer *answer)
{
	struct sl_frame *frame = w->batch->frame[f];

	if (answer->type == SL_PYTHON_FAILED) {
		leave_unjudged(w, f);
		count(&w->e->counts.errors);
		return;
	}
	put_results(w->e, frame, SL_PYTHON_JUDGED, answer);
	sl_frame_decide(frame, (int)answer->keep, (float)answer->score, SL_REASON_SCORE);
	count(&w->e->counts.judged);
}

/* From `next` on, the first frame that the script is to see. */
static void find_next(struct work *w)
{
	while (w->next < w->batch->frames && !is_shown(w->e, w->batch->frame[w->next]))
		w->next++;
	w->filled = false;
	w->head_ns = 0;
}

static void pass_over(struct work *w)
{
	leave_unjudged(w, w->next++);
	find_next(w);
}

static void fill(struct work *w)
{
	sl_python_fill(w->e, w->e->spare, w->e->ticket + 1, w->batch->frame[w->next]);
	w->filled = true;
}

/* ---- a process ---- */

/* Give it back; all that finish() wrote to it can be seen by who takes it next. */
static void let_go(struct sl_python_process *p, enum sl_python_state state)
{
	p->engaged = false;
	atomic_store_explicit(&p->state, state, memory_order_release);
}

static bool take(struct sl_python_process *p, enum sl_python_state from)
{
	uint32_t state = from;

	return atomic_compare_exchange_strong_explicit(&p->state, &state, SL_PYTHON_BUSY,
						       memory_order_acquire, memory_order_relaxed);
}

/* The supervisor starts another one. why: NULL: it has ended. */
static void break_off(struct work *w, struct sl_python_process *p, const char *why)
{
	if (p->engaged && p->waits) {
		leave_unjudged(w, p->frame);
		w->given--;
	}
	p->why = why;
	let_go(p, SL_PYTHON_BROKEN);
	sl_python_kick(w->e);
}

/* The time of its frame is over: the frame goes on. */
static void run_out(struct work *w, struct sl_python_process *p)
{
	leave_unjudged(w, p->frame);
	count(&w->e->counts.late);
	p->waits = false;
	w->given--;
}

static bool is_late(const struct work *w, const struct sl_python_process *p, uint64_t now)
{
	return now - p->since_ns >= w->e->deadline_ns;
}

/* An answer that is read after the deadline is late, also where this thread had no time to look at
 * the deadline before. */
static void settle(struct work *w, struct sl_python_process *p,
		   const struct sl_python_answer *answer)
{
	if (p->waits && is_late(w, p, sl_clock_ns())) {
		run_out(w, p);
	} else if (p->waits) { /* or else its frame has gone on */
		judge(w, p->frame, answer);
		w->given--;
	}
	let_go(p, SL_PYTHON_IDLE);
}

static bool is_answer(const struct sl_python_process *p, const struct sl_python_answer *answer)
{
	return (answer->type == SL_PYTHON_VERDICT || answer->type == SL_PYTHON_FAILED) &&
	       answer->ticket <= p->ticket;
}

/* Whether there was anything. Answers about frames before its last one are second answers, as of a
 * script that forked; they change nothing. */
static bool listen_to(struct work *w, struct sl_python_process *p)
{
	struct sl_python_answer answer, raw;
	ssize_t n;

	do {
		n = recv(p->socket, &raw, sizeof(raw), MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			break_off(w, p, NULL);
			return true;
		}
		if (sl_python_answer_check(&raw, (size_t)n, w->e->numbers, &answer) ||
		    !is_answer(p, &answer)) {
			break_off(w, p, "wrote what is no answer to the socket of the stage");
			return true;
		}
	} while (n < 0 || answer.ticket < p->ticket);
	settle(w, p, &answer);
	return true;
}

/* ---- the batch ---- */

static bool listen_to_all(struct work *w)
{
	bool did = false;

	for (uint32_t i = 0; i < w->e->processes; i++)
		if (w->e->process[i].engaged)
			did |= listen_to(w, &w->e->process[i]);
	return did;
}

static void give(struct work *w, struct sl_python_process *p)
{
	struct sl_python_engine *e = w->e;
	struct sl_python_order order = {.magic = SL_PYTHON_MAGIC,
					.type = SL_PYTHON_JUDGE,
					.ticket = e->ticket + 1,
					.place = e->spare};
	uint32_t place = p->place;

	if (!w->filled)
		fill(w);
	p->since_ns = sl_clock_ns(); /* before it has the frame: this thread may be held up */
	if (send(p->socket, &order, sizeof(order), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(order)) {
		break_off(w, p, NULL);
		return;
	}
	p->place = e->spare;
	e->spare = place;
	p->ticket = ++e->ticket;
	p->frame = w->next++;
	p->waits = p->engaged = true;
	w->given++;
	find_next(w);
}

/* To processes that have nothing to do. */
static bool give_out(struct work *w)
{
	bool did = false;

	for (uint32_t i = 0; i < w->e->processes && w->next < w->batch->frames; i++)
		if (take(&w->e->process[i], SL_PYTHON_IDLE)) {
			give(w, &w->e->process[i]);
			did = true;
		}
	return did;
}

/* Frames whose time is over; processes that are no longer waited for. */
static bool expire(struct work *w, uint64_t now)
{
	bool did = false;

	for (uint32_t i = 0; i < w->e->processes; i++) {
		struct sl_python_process *p = &w->e->process[i];

		if (!p->engaged)
			continue;
		if (p->waits && is_late(w, p, now)) {
			run_out(w, p);
			did = true;
		}
		if (!p->waits && atomic_load_explicit(&p->ended, memory_order_relaxed))
			break_off(w, p, NULL);
		else if (!p->waits && now - p->since_ns >= w->e->stuck_ns)
			break_off(w, p, "did not answer for the time of stuck_s");
	}
	return did;
}

/* A process that owes an answer, and may still be waited for: until then; 0: there is none. */
static uint64_t hope_ns(const struct work *w, uint64_t now)
{
	uint64_t until = 0;

	for (uint32_t i = 0; i < w->e->processes; i++) {
		const struct sl_python_process *p = &w->e->process[i];
		uint64_t end = p->since_ns + 2 * w->e->deadline_ns;

		if (p->engaged && !p->waits && end > now && end > until)
			until = end;
	}
	return until;
}

/* The next frame, when no process has one whose time is not over. */
static bool expire_next(struct work *w, uint64_t now)
{
	if (w->next == w->batch->frames || w->given)
		return false;
	if (hope_ns(w, now) && (!w->head_ns || now - w->head_ns < w->e->deadline_ns)) {
		w->head_ns = w->head_ns ? w->head_ns : now;
		return false;
	}
	pass_over(w);
	return true;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Until an answer comes, or a time is over. */
static void wait_for_answers(const struct work *w, uint64_t now)
{
	struct pollfd poll_fd[SL_PYTHON_PROCESSES];
	uint64_t until = now + w->e->deadline_ns, left;
	struct timespec timeout;
	nfds_t n = 0;

	for (uint32_t i = 0; i < w->e->processes; i++) {
		const struct sl_python_process *p = &w->e->process[i];

		if (!p->engaged)
			continue;
		poll_fd[n++] = (struct pollfd){.fd = p->socket, .events = POLLIN};
		if (p->waits)
			until = earlier(until, p->since_ns + w->e->deadline_ns);
	}
	if (w->head_ns)
		until = earlier(earlier(until, w->head_ns + w->e->deadline_ns), hope_ns(w, now));
	left = until > now ? until - now : 0;
	timeout.tv_sec = (time_t)(left / 1000000000);
	timeout.tv_nsec = (long)(left % 1000000000);
	ppoll(poll_fd, n, &timeout, NULL);
}

static void begin(struct work *w)
{
	for (uint32_t f = 0; f < w->batch->frames; f++)
		put_results(w->e, w->batch->frame[f], SL_PYTHON_NOT_SHOWN, NULL);
	for (uint32_t i = 0; i < w->e->processes; i++) {
		struct sl_python_process *p = &w->e->process[i];

		if (take(p, SL_PYTHON_OVERDUE)) {
			p->engaged = true;
			p->waits = false;
		}
	}
	find_next(w);
}

static void end(struct work *w)
{
	for (uint32_t i = 0; i < w->e->processes; i++)
		if (w->e->process[i].engaged)
			let_go(&w->e->process[i], SL_PYTHON_OVERDUE);
}

void sl_python_judge(struct sl_python_engine *e, struct sl_batch *batch)
{
	struct work w = {.e = e, .batch = batch};

	begin(&w);
	while (w.given || w.next < batch->frames) {
		bool did = listen_to_all(&w);
		uint64_t now;

		did |= give_out(&w);
		now = sl_clock_ns();
		did |= expire(&w, now);
		did |= expire_next(&w, now);
		if (did)
			continue;
		if (!w.filled && w.next < batch->frames)
			fill(&w);
		else
			wait_for_answers(&w, now);
	}
	end(&w);
}
