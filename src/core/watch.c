/* watch.c - when is a source drained, and when silent? */
#include "core/watch.h"

#include <stddef.h>

bool sl_progress_between_blocks(const struct sl_progress *p)
{
	return p->reached <= p->first || p->packets == p->packets_whole;
}

bool sl_progress_is_held(const struct sl_progress *p)
{
	return p->reached >= p->opened && sl_progress_between_blocks(p);
}

static bool something_came(const struct sl_watch *watch, const struct sl_sight *sight)
{
	return sight->arrived != watch->seen.arrived || sight->packets != watch->seen.packets;
}

static void note_quiet(struct sl_watch *watch, const struct sl_sight *sight, uint64_t since_ns)
{
	watch->quiet_since_ns = since_ns;
	watch->quiet_idle = sight->idle;
}

static bool is_silent(const struct sl_watch *watch, const struct sl_watch_limits *limits,
		      const struct sl_sight *sight, uint64_t quiet_ns)
{
	bool begun = sight->arrived || sight->packets;
	uint64_t limit_ns = begun ? limits->silence_ns : limits->first_ns;

	return limit_ns && quiet_ns > limit_ns &&
	       sight->idle - watch->quiet_idle >= limits->looks &&
	       (!sight->looked_ns || sight->looked_ns >= watch->quiet_since_ns + limit_ns);
}

enum sl_watch_says sl_watch_look(struct sl_watch *watch, const struct sl_watch_limits *limits,
				 const struct sl_sight *sight, uint64_t now_ns)
{
	uint64_t quiet_ns;

	if (!watch->quiet_since_ns || sight->held || something_came(watch, sight))
		note_quiet(watch, sight, now_ns);
	else if (sight->word_ns > watch->quiet_since_ns)
		note_quiet(watch, sight, sight->word_ns);
	watch->seen = *sight;
	if (sight->held)
		return SL_WATCH_HELD;
	quiet_ns = now_ns > watch->quiet_since_ns ? now_ns - watch->quiet_since_ns : 0;
	if (limits && is_silent(watch, limits, sight, quiet_ns))
		return SL_WATCH_SILENT;
	if (quiet_ns > SL_WATCH_DRAIN_NS && sight->idle - watch->quiet_idle >= SL_WATCH_LOOKS)
		return SL_WATCH_DRAINED;
	return SL_WATCH_ALIVE;
}

enum sl_watch_says sl_watch_module(struct sl_watch *watch, const struct sl_watch_limits *limits,
				   const struct sl_progress *p, uint64_t now_ns)
{
	const struct sl_sight sight = {
		.arrived = p->reached > p->first ? p->reached : 0,
		.packets = p->reached > p->first ? p->packets : 0,
		.idle = p->idle,
		.looked_ns = p->looked_ns,
		.held = sl_progress_is_held(p),
	};

	return sl_watch_look(watch, limits, &sight, now_ns);
}
