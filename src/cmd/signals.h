/* signals.h - SIGINT and SIGTERM ask for an orderly end; a second one, later, does not ask. */
#ifndef SL_CMD_SIGNALS_H
#define SL_CMD_SIGNALS_H

/* Which signal came first; 0: none yet. */
extern volatile int sl_signal;

/* The second signal ends the process at once with status 130. */
void sl_signals_catch(void);
const char *sl_signal_name(int signal);

#endif
