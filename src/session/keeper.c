/* keeper.c - the state that a keeper holds, at both ends of a run. */
#include "session/keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "control/handover/state.h"
#include "experiment/experiment.h"

static int take_over(struct sl_session_keeper *handover, struct sl_receiver *receiver)
{
	int err = sl_receiver_take_over(receiver);

	if (err)
		return err;
	handover->taken_over = true;
	handover->stored = sl_receiver_plans(receiver);
	return 0;
}

static int open_with(struct sl_session_keeper *handover, struct sl_experiment *e,
		     const char *outcomes, struct sl_handover_message *message,
		     struct sl_handover *state, struct sl_receiver **receiver)
{
	bool any = message->type == SL_HANDOVER_MESSAGE_STATE;
	int err = any ? sl_handover_decode(message, state) : 0;

	if (err) {
		sl_error("what the keeper holds is of another version of this program; begin anew "
			 "(sluice keeper %s --forget, then restart the sources)",
			 e->control.keeper);
		return err;
	}
	err = sl_receiver_open_handover(e, outcomes, any ? state : NULL, receiver);
	if (!err && any) {
		err = take_over(handover, *receiver);
		if (err)
			sl_receiver_close(*receiver);
	}
	sl_handover_close(state);
	return err;
}

int sl_session_keeper_open(struct sl_session_keeper *handover, struct sl_experiment *e,
			   const char *outcomes, struct sl_receiver **receiver)
{
	struct sl_handover_message *message;
	struct sl_handover *state;
	int err;

	*handover = (struct sl_session_keeper){.socket = -1};
	if (!e->control.keeper[0])
		return sl_receiver_open(e, outcomes, receiver);
	if (e->emulate_local) {
		sl_error("control.keeper: a front end that this run starts ends with it; start it "
			 "by itself (sluice emulate), without 'emulate: local'");
		return -EINVAL;
	}
	message = malloc(sizeof(*message));
	state = malloc(sizeof(*state));
	err = message && state ? sl_keeper_claim(e->control.keeper, &handover->socket, message)
			       : -ENOMEM;
	if (!err) {
		sl_handover_init(state);
		err = open_with(handover, e, outcomes, message, state, receiver);
		sl_handover_message_close(message);
	}
	if (err)
		sl_session_keeper_close(handover);
	free(message);
	free(state);
	return err;
}

int sl_session_keeper_store(struct sl_session_keeper *handover, const struct sl_receiver *receiver)
{
	struct sl_handover_message *message;
	struct sl_handover *state;
	int err = -ENOMEM;

	handover->receiver = receiver;
	if (handover->socket < 0 || handover->stored == sl_receiver_plans(receiver))
		return 0;
	message = malloc(sizeof(*message));
	state = malloc(sizeof(*state));
	if (message && state) {
		sl_receiver_hand_over(receiver, state);
		err = sl_handover_encode(state, message);
		if (!err)
			err = sl_keeper_store(handover->socket, message);
		handover->stored = sl_receiver_plans(receiver);
	}
	if (err)
		sl_error("the keeper does not take what this run would leave: %s", strerror(-err));
	free(message);
	free(state);
	return err;
}

void sl_session_keeper_poll(struct sl_session_keeper *handover)
{
	if (handover->socket >= 0 && sl_keeper_lost(handover->socket)) {
		sl_warn("the keeper is gone: this run goes on, but no other can take its place");
		sl_session_keeper_close(handover);
	}
	if (handover->receiver) /* a module that came back has another plan */
		sl_session_keeper_store(handover, handover->receiver);
}

void sl_session_keeper_end(struct sl_session_keeper *handover, const struct sl_receiver *receiver)
{
	if (handover->socket < 0)
		return;
	if (sl_receiver_is_exhausted(receiver))
		sl_keeper_store(handover->socket, NULL);
	else
		sl_info("the keeper still holds what the sources rely on: another run can take "
			"them over");
}

void sl_session_keeper_close(struct sl_session_keeper *handover)
{
	if (handover->socket >= 0)
		close(handover->socket);
	handover->socket = -1;
}
