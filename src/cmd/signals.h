/* signals.h - SIGINT and SIGTERM ask for an orderly end; a second one, later, does not ask. SIGUSR1
 * tells a receiver that no more front ends will come. */
#ifndef SL_CMD_SIGNALS_H
#define SL_CMD_SIGNALS_H

/* Which signal came first; 0: none yet. */
extern volatile int sl_signal;

/* Not 0: the program that started this receiver says that the front end has ended. */
extern volatile int sl_front_end_ended;

/* The second signal ends the process at once with status 130. */
void sl_signals_catch(void);
const char *sl_signal_name(int signal);

#endif
