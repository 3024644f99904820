/*
 * fake_slack_api: the functions of sl_api.h that the way in calls; the test answers.
 *
 * Include it in one file of a test program that is linked with -z muldefs.
 */
#ifndef TESTS_FAKE_SLACK_API_H
#define TESTS_FAKE_SLACK_API_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_api.h"

#define FAKE_API ((struct sl_api *)&fake_api)

struct sl_call {
        char method[60];
        json_t *args;
        sl_answer_fn *done; /* NULL: answered, or aborted */
        void *arg;
};

static struct {
        struct sl_call calls[600];
        unsigned count;
} fake_api;

static inline void fake_api_reset(void)
{
        for (unsigned i = 0; i < fake_api.count; i++)
                json_decref(fake_api.calls[i].args);
        memset(&fake_api, 0, sizeof(fake_api));
}

struct sl_call *sl_api_call(struct sl_api *api, const struct sl_request *request,
                            sl_answer_fn *done, void *arg)
{
        struct sl_call *c = &fake_api.calls[fake_api.count++];

        assert_ptr_equal(api, FAKE_API);
        assert_true(fake_api.count < COUNT(fake_api.calls));
        snprintf(c->method, sizeof(c->method), "%s", request->method);
        c->args = json_deep_copy(request->args);
        c->done = done;
        c->arg = arg;
        return c;
}

void sl_api_ask(struct sl_api *api, const struct sl_request *request, sl_answer_fn *done, void *arg)
{
        sl_api_call(api, request, done, arg);
}

void sl_api_abort(struct sl_call *c)
{
        if (c)
                c->done = NULL;
}

bool sl_api_is_unavailable(const struct sl_answer *a)
{
        return a->status == 0 || a->status >= 500;
}

bool sl_api_owns_url(const struct sl_api *api, const char *url)
{
        (void)api;
        return strncmp(url, "https://hooks.slack.com/", 24) == 0;
}

/* Answers a call; error NULL: with this result. */
static inline void fake_api_answer(unsigned i, const char *error, json_t *result)
{
        struct sl_call *c = &fake_api.calls[i];
        sl_answer_fn *done = c->done;

        assert_non_null(done);
        c->done = NULL;
        done(c->arg, &(struct sl_answer){ .ok = !error,
                                          .status = error && !*error ? 0 : 200,
                                          .error = error,
                                          .why = error,
                                          .result = result,
                                          .retry_after_ms = -1 });
        json_decref(result);
}

#endif
