/* handover.c - the keeper's estate at both ends of a run. */
#include "cmd/run/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/handover/state.h"

static int adopt(struct sl_heir *heir, struct sl_receiver *receiver)
{
	const struct sl_experiment *e = receiver->experiment;
	int err = sl_receiver_take_over(receiver);

	if (err)
		return err;
	heir->adopted = true;
	heir->stored = receiver->plans;
	sl_adopted_init(&heir->watch, receiver,
			e->feroce.enable ? e->feroce.silence_s : e->control.silence_s);
	sl_info("adopted %u modules; this run begins with sequence %llu", receiver->ring.modules,
		(unsigned long long)receiver->assembler.next);
	if (e->run.dark_frames && receiver->assembler.next >= e->run.dark_frames)
		sl_warn("dark frames were sent before: pedestals of this run are those of the "
			"calibration, until dark frames come again");
	return 0;
}

static int open_with(struct sl_heir *heir, struct sl_experiment *e, const char *outcomes,
		     struct sl_parcel *parcel, struct sl_estate *estate,
		     struct sl_receiver **receiver)
{
	bool any = parcel->type == SL_PARCEL_ESTATE;
	int err = any ? sl_estate_decode(parcel, estate) : 0;

	if (err) {
		sl_error("what the keeper holds is of another version of this program; begin anew "
			 "(sluice keep %s --forget, then restart the sources)",
			 e->control.keeper);
		return err;
	}
	err = sl_receiver_open_handover(e, outcomes, any ? estate : NULL, receiver);
	if (!err && any) {
		err = adopt(heir, *receiver);
		if (err)
			sl_receiver_close(*receiver);
	}
	sl_estate_close(estate);
	return err;
}

int sl_heir_open(struct sl_heir *heir, struct sl_experiment *e, const char *outcomes,
		 struct sl_receiver **receiver)
{
	struct sl_parcel *parcel;
	struct sl_estate *estate;
	int err;

	*heir = (struct sl_heir){.socket = -1};
	if (!e->control.keeper[0])
		return sl_receiver_open(e, outcomes, receiver);
	if (e->emulate_local) {
		sl_error("control.keeper: a front end that this run starts ends with it; start it "
			 "by itself (sluice emulate), without 'emulate: local'");
		return -EINVAL;
	}
	parcel = malloc(sizeof(*parcel));
	estate = malloc(sizeof(*estate));
	err = parcel && estate ? sl_keeper_claim(e->control.keeper, &heir->socket, parcel)
			       : -ENOMEM;
	if (!err) {
		sl_estate_init(estate);
		err = open_with(heir, e, outcomes, parcel, estate, receiver);
		sl_parcel_close(parcel);
	}
	if (err)
		sl_heir_close(heir);
	free(parcel);
	free(estate);
	return err;
}

int sl_heir_store(struct sl_heir *heir, const struct sl_receiver *receiver)
{
	struct sl_parcel *parcel;
	struct sl_estate *estate;
	int err = -ENOMEM;

	heir->receiver = receiver;
	if (heir->socket < 0 || heir->stored == receiver->plans)
		return 0;
	parcel = malloc(sizeof(*parcel));
	estate = malloc(sizeof(*estate));
	if (parcel && estate) {
		sl_receiver_hand_over(receiver, estate);
		err = sl_estate_encode(estate, parcel);
		if (!err)
			err = sl_keeper_store(heir->socket, parcel);
		heir->stored = receiver->plans;
	}
	if (err)
		sl_error("the keeper does not take what this run would leave: %s", strerror(-err));
	free(parcel);
	free(estate);
	return err;
}

void sl_heir_poll(struct sl_heir *heir)
{
	if (heir->socket >= 0 && sl_keeper_lost(heir->socket)) {
		sl_warn("the keeper is gone: this run goes on, but no other can take its place");
		sl_heir_close(heir);
	}
	if (heir->receiver) /* a module that came back has another plan */
		sl_heir_store(heir, heir->receiver);
	if (heir->adopted)
		sl_adopted_poll(&heir->watch, sl_clock_ns());
}

void sl_heir_stop(struct sl_heir *heir)
{
	if (heir->adopted)
		sl_adopted_stop(&heir->watch);
}

void sl_heir_abandon(struct sl_heir *heir)
{
	if (heir->adopted)
		sl_adopted_abandon(&heir->watch);
}

void sl_heir_end(struct sl_heir *heir, const struct sl_receiver *receiver)
{
	if (heir->socket < 0)
		return;
	if (sl_adopted_exhausted(receiver))
		sl_keeper_store(heir->socket, NULL);
	else
		sl_info("the keeper still holds what the sources rely on: another run can adopt "
			"them");
}

void sl_heir_close(struct sl_heir *heir)
{
	if (heir->socket >= 0)
		close(heir->socket);
	heir->socket = -1;
}
