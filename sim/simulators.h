/*
 * simulators: one row each in the table of main.c.
 */
#ifndef SIM_SIMULATORS_H
#define SIM_SIMULATORS_H

struct simulator {
        const char *name, *summary;
        /* argv[0] is the simulator's name. Returns the exit code. */
        int (*run)(int argc, char **argv);
};

int tg_main(int argc, char **argv);
int dc_main(int argc, char **argv);

#endif
