/* Test timeouts, generous enough for slow and busy machines. */
#ifndef TESTS_PATIENCE_H
#define TESTS_PATIENCE_H

#define PATIENCE_MS 60000

#endif
