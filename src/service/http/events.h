/* events.h - Server-Sent Events: what happens, for any number of viewers that look on.
 *
 * Model:     a program publishes events; each viewer that asked for them gets them in order. A
 *            viewer has a queue of at most SL_EVENTS_QUEUE events and SL_EVENTS_BYTES bytes. What
 *            has no room drops the oldest, and an event with `latest` takes the place of a waiting
 *            one of the same name and topic; the viewer gets an event "missed" with the number of
 *            those before the next one.
 * Threads:   any thread publishes. It never waits for a viewer.
 * Ownership: texts are copied once for all viewers.
 * Cost:      a lock, and a pointer for each viewer. */
#ifndef SL_SERVICE_EVENTS_H
#define SL_SERVICE_EVENTS_H

#include "service/http/http.h"

enum { SL_EVENTS_QUEUE = 32, SL_EVENTS_BYTES = 256 << 10, SL_EVENTS_TOPIC = 64 };

struct sl_events;

struct sl_event {
	const char *name;  /* "status" */
	const char *topic; /* of which session; NULL: of none: viewers of any topic get it */
	const char *data;  /* one line: JSON */
	bool latest;	   /* only the newest one of this name and topic is worth having */
};

struct sl_events *sl_events_open(void); /* NULL: no memory */
/* Viewers get the end of their streams. Before the server is closed. */
void sl_events_end(struct sl_events *events);
/* After the server is closed. */
void sl_events_close(struct sl_events *events);

void sl_events_publish(struct sl_events *events, const struct sl_event *event);
/* A comment to every viewer that has nothing waiting: connections that are gone are noticed. */
void sl_events_keep_alive(struct sl_events *events);
unsigned sl_events_viewers(struct sl_events *events);
uint64_t sl_events_missed(struct sl_events *events); /* of all viewers so far */

/* The answer is a stream of these events, beginning with `first` (NULL: none). topic: only events
 * of this one and of none; "": all. `latest` events of a topic come at most every
 * interval_ms. */
void sl_http_answer_events(struct sl_http_request *request, struct sl_events *events,
			   const char *topic, uint64_t interval_ms, const struct sl_event *first,
			   unsigned firsts);

#endif
