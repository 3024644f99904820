/* How long a test waits for what must happen, so that a slow or busy machine fails no test. */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#define PATIENCE_MS 60000

#endif
