/* sluice.c - the program: a table of subcommands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/thread.h"
#include "cmd/cmd.h"
#include "session/child.h"

const struct sl_command sl_commands[] = {
	{"run", "run EXPERIMENT.yaml [options]", "Acquire and process as the experiment file says.",
	 sl_cmd_run,
	 "Waits for the front ends (or starts one itself, with 'emulate: local' or --emulate), "
	 "shows one\n"
	 "line of progress, and ends with the ledger. Ctrl-C ends the run properly: the front ends "
	 "stop\n"
	 "after their current frame, everything sent is processed, files are closed.\n\n"
	 "exit status: 0 intact; 1 could not run; 2 ledger closed but something lost, damaged or "
	 "unwritten;\n"
	 "3 a front end vanished or the ledger does not close.",
	 true},
	{"session", "session EXPERIMENT.yaml --root DIR [options]",
	 "Take run after run of one experiment, each in a folder of its own.", sl_cmd_session,
	 "Every run has a number and a folder DIR/NNNNNN with its data, run.log, the experiment "
	 "and result.json.\n"
	 "With --runs N it takes N runs and ends; otherwise it waits for requests. One line on "
	 "stdout for each\n"
	 "run: number, result, frames, module-frames lost, folder. Ctrl-C ends the run properly "
	 "and "
	 "then the\n"
	 "session; a second Ctrl-C does not wait for the front ends.\n"
	 "docs/how-to/many-short-runs.md tells how, docs/reference/run-folders.md what is in a "
	 "folder.\n\n"
	 "exit status: the worst of its runs, as of run; 0 where there was none.",
	 true},
	{"emulate", "emulate EXPERIMENT.yaml [options]",
	 "Be the detector side of an experiment, on this or another host.", sl_cmd_emulate,
	 "Looks for the receiver at control.address and control.port, offers all modules, sends "
	 "what the\n"
	 "detector section describes. If the receiver goes away it offers itself again and goes "
	 "on.\n"
	 "With --serve it stays, is configured, armed and started by sluice ctl NAME or by "
	 "telegrams, and sends\n"
	 "run after run: docs/how-to/detector-side.md tells how.",
	 true},
	{"check", "check EXPERIMENT.yaml [options]",
	 "Check an experiment, and show what every option is and where its value comes from.",
	 sl_cmd_check,
	 "Prints the resolved experiment as YAML, each value with its origin: the experiment file, "
	 "a site\n"
	 "file, --set, or default. Reports every mistake. Opens no sockets, no files for data and "
	 "no memory\n"
	 "for a ring. docs/how-to/site.md tells more.\n\n"
	 "exit status: 0 no mistake; 1 mistakes, or the file cannot be read.",
	 true},
	{"calibrate", "calibrate EXPERIMENT.yaml --output FILE.h5 [options]",
	 "Measure pedestals, noise and bad pixels from dark frames.", sl_cmd_calibrate,
	 "Runs the experiment with its stages and sinks replaced: dark frames are summed up, and "
	 "a\n"
	 "calibration file is written, which calibration.file of an experiment names. --file takes "
	 "them\n"
	 "from a file of dark images instead; --gain g1 and g2 measure a detector that is forced "
	 "into\n"
	 "that gain, and --base adds the result to what an earlier file has. "
	 "docs/how-to/calibration.md "
	 "tells how.\n\n"
	 "exit status: as of run.",
	 true},
	{"ps", "ps [options]",
	 "List the sessions and runs of this user on this host: state, rate, loss, progress.",
	 sl_cmd_ps,
	 "RATE is of the last second or two, LOST counts module-frames that were lost or damaged, "
	 "AGE is the\n"
	 "time since the last progress. 'crashed': the session is not there any more and did not "
	 "close.\n"
	 "docs/how-to/control-a-session.md tells more; of --metrics, docs/how-to/prometheus.md."},
	{"ctl",
	 "ctl NAME [status|configure|arm|start|pause|resume|stop|abort|metadata|wait|watch|close] "
	 "[options]",
	 "Ask a session or run for its status, or tell it what to do.", sl_cmd_ctl,
	 "  status                          one line (default)\n"
	 "  configure [PATH=VALUE ...]      read the experiment again, with these overrides\n"
	 "  arm, start, pause, resume, stop, abort\n"
	 "  metadata [KEY=VALUE ...]        set (KEY= removes) for this run, and print all\n"
	 "  wait STATE ...                  until it is in one of these states, or the run has "
	 "ended\n"
	 "  watch                           on a terminal a screen of its own, else a line each "
	 "--interval_ms;\n"
	 "                                  sluice ctl watch [NAME ...]: of all sessions, or "
	 "these\n"
	 "  close                           end the session\n\n"
	 "With --host URL a service does it (sluice serve), and more:\n"
	 "  sessions, experiments, runs, capabilities\n"
	 "  open EXPERIMENT [PARAMETER=VALUE ...]   start a session; --name, --set\n"
	 "  get EXPERIMENT, put EXPERIMENT FILE, check EXPERIMENT [FILE]\n"
	 "  run NUMBER [log|experiment|outcomes|picture.png|explain]\n"
	 "  NAME ledger|results|...                 as above; configure takes PARAMETER=VALUE\n"
	 "  [METHOD] /PATH [FILE]                   any call of docs/reference/api.md\n"
	 "With --telegram FILE and without NAME: the requests of an XML document, in order, until "
	 "one fails;\n"
	 "the reply is another (docs/reference/telegram.md).\n\n"
	 "exit status: 0 done; 1 no such session, or it refuses; of start, stop and abort with "
	 "--wait: that\n"
	 "of the run. docs/how-to/control-a-session.md tells more."},
	{"serve", "serve [--listen ADDRESS:PORT] [--root DIR] [--experiments DIR] [options]",
	 "Be the service of this host: sessions, runs and experiments over HTTP, and a live page.",
	 sl_cmd_serve,
	 "Sessions are processes of their own: the service may end, or be killed, and a run does "
	 "not "
	 "notice.\n"
	 "Without --tokens every program of this host may do everything. docs/how-to/serve.md "
	 "tells how to "
	 "run it,\n"
	 "docs/reference/api.md what it answers.",
	 true},
	{"share", "share [NAME|URL|serve NAME] [options]",
	 "List memory that can be followed: of live runs, and of other programs of this user.",
	 sl_cmd_share,
	 "RATE is that of the last quarter of a second. With a name or URL: its arrays, too. serve "
	 "is a share\n"
	 "to try: sluice share serve demo --npy FILE.npy, or --raw FILE, or --size BYTES, until "
	 "Ctrl-C.\n"
	 "docs/how-to/follow-a-run.md tells more."},
	{"follow", "follow NAME|URL [options]",
	 "Follow a live run, or another share: a line for each element, NumPy files, pictures.",
	 sl_cmd_follow,
	 "NAME or share:NAME is a share on this host, rdma://HOST:PORT/NAME one anywhere. It "
	 "delays the run by\n"
	 "nothing: what it does not take in time is overtaken. It ends when the share does, or "
	 "with Ctrl-C.\n"
	 "docs/how-to/follow-a-run.md tells more.\n\n"
	 "exit status: 0; 1 there is no such share, its writer crashed, or a file cannot be "
	 "written."},
	{"fetch", "fetch NAME|URL [options]",
	 "Get an element of a share, or a part of it: bytes, a NumPy file, a picture.",
	 sl_cmd_fetch,
	 "Only the part that is asked for is moved. docs/how-to/follow-a-run.md tells more."},
	{"message", "message NAME|URL [options]",
	 "Say something to the program that writes a share, and print what it answers.",
	 sl_cmd_message,
	 "What a message means is between the two programs; a run takes messages and does nothing "
	 "with them.\n\n"
	 "exit status: 0; 1 it could not be sent, or no answer came."},
	{"keeper", "keeper NAME [options]",
	 "Hold memory and sockets of a receiver, so that another can take its place.",
	 sl_cmd_keeper,
	 "For sources that cannot be planned anew: with control.keeper: NAME, a receiver that ends "
	 "or is\n"
	 "killed can be started again, and goes on with the sources as they are. "
	 "docs/how-to/restart.md "
	 "tells how."},
	{"list",
	 "list [link|detector|stage|unit|sink|section|states|errors|metrics|NAME] [--markdown]",
	 "Show what an experiment file can be made of, with all options.", sl_cmd_list, NULL, true},
	{"show", "show EXPERIMENT.yaml|RUN.nxs [options]",
	 "Draw a frame of an experiment's detector, or of a run's file, as PNG.", sl_cmd_show,
	 "Images are assembled by the detector's layout, with gaps; raw pixels that have a "
	 "calibration are\n"
	 "shown in photons. Detectors of events draw what they mean.",
	 true},
	{"geometry", "geometry EXPERIMENT.yaml|RUN.nxs|FOLDER [options]",
	 "Print where the pixels of a detector, or of a run's file, lie.", sl_cmd_geometry,
	 "Without an option it is a table for people; --poni, --crystfel and --nexus write it as "
	 "pyFAI,\n"
	 "CrystFEL and NXmx have it. FOLDER is that of a run: its first data file is read. "
	 "docs/how-to/geometry.md\n"
	 "tells how to describe a detector.",
	 true},
	{"recover", "recover RUN.nxs ... [options]",
	 "Make the files of a run that was killed whole.", sl_cmd_recover,
	 "Data files that were closed are whole; the one that was being written is cut after its "
	 "last "
	 "flush\n(sinks.nexus.flush_s), and RUN.nxs gets the rows of all of them. A file that is "
	 "whole "
	 "is left alone.",
	 false},
	{"convert", "convert RUN.raw OUT.nxs [options]",
	 "Make the NeXus file of a run that the sink raw has recorded.", sl_cmd_convert,
	 "The file is what the sink nexus would have written in the same run. --set takes options "
	 "of that\n"
	 "sink, as in --set compression=bszstd --set image=assembled. Killed and started again "
	 "with "
	 "the same\n"
	 "arguments, it goes on behind the last whole data file. Of a run that was killed it "
	 "converts what\n"
	 "there is. docs/how-to/burst.md tells how.\n\n"
	 "exit status: 0 converted; 1 not, or not all of it."},
	{"cut", "cut SESSION|RUN.raw --last TIME OUT.nxs [options]",
	 "Save what just happened: a part of a run's rolling buffer, while the run goes on.",
	 sl_cmd_cut,
	 "Makes a run's file with its own ledger out of the last seconds, or, with --around N, of "
	 "frames\n"
	 "around one. Rejected frames have their images, too. --set takes options of the sink "
	 "nexus.\n"
	 "docs/how-to/look-back.md tells how.\n\n"
	 "exit status: 0 all of the window is in the file; 2 a part of it is missing, and the file "
	 "says so;\n"
	 "1 no file was made."},
	{"audit", "audit RUN.nxs|FOLDER [options]",
	 "Prove that the files of a run are complete and unchanged, or name what is not.",
	 sl_cmd_audit,
	 "Reads every row, image and result back, makes the run's hash tree anew and compares it "
	 "with the\n"
	 "root in the file and in its summary. FOLDER is that of a run. "
	 "docs/how-to/audit.md tells how.\n\n"
	 "exit status: 0 proven; 1 damaged or incomplete; 2 cannot be audited.",
	 false},
	{"densify", "densify SPARSE.nxs IMAGES.h5 [options]",
	 "Make images again out of lists of pixels and their background.", sl_cmd_densify,
	 "Reads what the stage 'sparse' left in a run's file, or what sparsify of pyFAI wrote. "
	 "Pixels that\n"
	 "were picked are as they were; others are the background at their distance from the "
	 "beam, or 0\n"
	 "where there is none. docs/reference/sparse.md tells more."},
	{"truth", "truth EXPERIMENT.yaml [options]",
	 "Write what is known of an experiment's synthetic frames, as HDF5.", sl_cmd_truth,
	 "Of every frame of the run: whether it is dark, whether it is a hit, and what there is to "
	 "be "
	 "found,\n"
	 "as a table. sluice run --truth writes the same beside a run.",
	 true},
	{"explain", "explain RUN [options]",
	 "Say why a run lost frames: the cause, the numbers that prove it, the command that mends "
	 "it.",
	 sl_cmd_explain,
	 "RUN is a run folder, a result or summary in a file, or the name of a live session. What "
	 "is looked at\n"
	 "is the ledger, and the record that the flight recorder leaves beside it "
	 "(docs/reference/flight-recorder.md).\n"
	 "docs/how-to/why-did-i-lose-frames.md tells more.\n\n"
	 "exit status: 0 the cause is named, or nothing was lost; 2 it is not known; 1 RUN cannot "
	 "be read.",
	 false},
	{"doctor", "doctor [EXPERIMENT.yaml] [options]",
	 "Check what this host lacks for line rate, and print the command that mends it.",
	 sl_cmd_doctor, NULL, true},
	{"bench", "bench link|detector|stage|trigger|gpu|codec|share [options]",
	 "Measure what links, emulated detectors, stages and shares do on this machine, beside "
	 "what people "
	 "use today.",
	 sl_cmd_bench, NULL /* sluice-bench has its own help */},
	{"pingpong", "pingpong [PEER] [options]",
	 "Be the other end of ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong.",
	 sl_cmd_pingpong,
	 "Without PEER it waits for a client, with PEER it is one. On the side with an RDMA "
	 "device:\n\n"
	 "  ibv_rc_pingpong -d DEVICE -g INDEX [HOST]\n\n"
	 "where INDEX is that of a RoCE v2 address. Both sides need the same size and MTU; every "
	 "byte that\n"
	 "arrives is checked.\n\n"
	 "exit status: 0 all went well; 1 it did not; 2 a message was not as it should be."},
	{"image-server", "image-server --session NAME --fd N [options]",
	 "Make images of a live session for the service, which starts this by itself.",
	 sl_cmd_image_server, NULL, .hidden = true},
	{NULL, NULL, NULL, NULL, NULL},
};

static void print_usage(FILE *out)
{
	fprintf(out,
		"Sluice %s - from detector front ends to a decision and a file, with every byte "
		"accounted for.\n\n"
		"usage: sluice COMMAND [options]\n\n",
		SL_VERSION);
	for (const struct sl_command *c = sl_commands; c->name; c++)
		if (!c->hidden)
			fprintf(out, "  %-10s %s\n", c->name, c->doc);
	fprintf(out, "\n  sluice COMMAND --help tells more; sluice --version.\n");
}

static int run(const struct sl_command *command, int argc, char **argv)
{
	if (command->plugins)
		argc = sl_cmd_plugins(argc, argv);
	return argc < 0 ? 1 : command->run(command, argc, argv);
}

enum { STACK_NEEDED = 1 << 20 };

struct call {
	const struct sl_command *command;
	int argc;
	char **argv;
	int status;
};

static void *run_call(void *arg)
{
	struct call *call = arg;

	call->status = run(call->command, call->argc, call->argv);
	return NULL;
}

/* `ulimit -s` may leave the main thread less stack than a command needs: then the command has a
 * thread of its own, with enough. */
static int run_with_stack(const struct sl_command *command, int argc, char **argv)
{
	struct call call = {command, argc, argv, 1};
	struct sl_thread thread = {0};
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_NEEDED)
		return run(command, argc, argv);
	if (!sl_thread_start(&thread, "command", NULL, run_call, &call))
		sl_thread_join(&thread);
	return call.status;
}

int main(int argc, char **argv)
{
	sl_child_bind();
	/* A closed socket and a full file are errors where they happen, not the end of the
	 * program. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);

	if (argc < 2) {
		print_usage(stderr);
		return 1;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("sluice %s\n", SL_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "keep")) {
		sl_warn("'sluice keep' is called 'sluice keeper' now; the former name still works");
		argv[1] = (char *)"keeper";
	}
	for (const struct sl_command *c = sl_commands; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return run_with_stack(c, argc - 1, argv + 1);
	sl_error("no command is called '%s'; sluice --help lists them", argv[1]);
	return 1;
}
