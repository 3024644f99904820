#include "platform/slack/sl_api.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "net/http_text.h"

struct sl_call {
        struct sl_api *api;
        sl_answer_fn *done;
        void *arg;
        TAILQ_ENTRY(sl_call) next;
};

struct sl_api {
        char *base;
        struct timer *timer;
        TAILQ_HEAD(, sl_call) refused;
};

static void on_timer(void *arg)
{
        const struct sl_answer answer = { .reach = HTTP_NOT_SENT,
                                          .kind = ERR_REFUSED,
                                          .why = "calls of Slack are not built yet",
                                          .retry_after_ms = -1 };
        struct sl_api *api = arg;
        struct sl_call *c = TAILQ_FIRST(&api->refused);

        if (!c)
                return;
        TAILQ_REMOVE(&api->refused, c, next);
        if (!TAILQ_EMPTY(&api->refused))
                timer_start(api->timer, 0);
        if (c->done)
                c->done(c->arg, &answer);
        free(c);
}

struct sl_api *sl_api_new(const struct sl_api_options *options)
{
        struct sl_api *api = mem_zalloc(sizeof(*api));

        api->base = mem_strdup(options->base);
        api->timer = timer_new(options->loop, on_timer, api);
        TAILQ_INIT(&api->refused);
        return api;
}

void sl_api_cancel(struct sl_api *api)
{
        (void)api;
}

void sl_api_abort(struct sl_call *c)
{
        if (c)
                TAILQ_REMOVE(&c->api->refused, c, next);
        free(c);
}

void sl_api_free(struct sl_api *api)
{
        struct sl_call *c;

        while ((c = TAILQ_FIRST(&api->refused)))
                sl_api_abort(c);
        timer_free(api->timer);
        free(api->base);
        free(api);
}

struct sl_call *sl_api_call(struct sl_api *api, const struct sl_request *request,
                            sl_answer_fn *done, void *arg)
{
        struct sl_call *c = mem_zalloc(sizeof(*c));

        (void)request;
        c->api = api;
        c->done = done;
        c->arg = arg;
        TAILQ_INSERT_TAIL(&api->refused, c, next);
        timer_start(api->timer, 0);
        return c;
}

void sl_api_ask(struct sl_api *api, const struct sl_request *request, sl_answer_fn *done, void *arg)
{
        sl_api_call(api, request, done, arg);
}

struct sl_call *sl_api_post(struct sl_api *api, const struct sl_post *post, sl_answer_fn *done,
                            void *arg)
{
        (void)post;
        return sl_api_call(api, NULL, done, arg);
}

bool sl_api_begun(const struct sl_call *c)
{
        (void)c;
        return false;
}

bool sl_api_is_unavailable(const struct sl_answer *a)
{
        return a->status == 0 || a->status == 429 || a->status >= 500;
}

bool sl_api_is_revoked(const char *error)
{
        (void)error;
        return false;
}

bool sl_api_owns_url(const struct sl_api *api, const char *url)
{
        return http_text_same_origin(url, api->base);
}

unsigned sl_api_limited(const struct sl_api *api)
{
        (void)api;
        return 0;
}
