/*
 * How long a test waits for what must happen. It costs nothing while all is well, and a machine
 * that is slow or busy, or whose disk takes its time, fails no test by being so.
 */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#define PATIENCE_MS 60000

#endif
