#include "api_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "patience.h"
#include "remote/remote.h"
#include "rows/schema.h"
#include "rule_list.h"
#include "schedule/schedule.h"
#include "scratch.h"

/* ---- the road's hooks ---- */

static void decide(struct dispatch *ctx, const struct incoming *in,
                   const struct placement_query *query, struct decision *out)
{
        struct api_rig *r = (struct api_rig *)ctx;

        if (r->dispatches) {
                dispatch_decide(r->dispatch, in, query, out);
                return;
        }
        out->agent = in->agent ? in->agent : r->agent ? r->agent : "echo";
        out->rule = "test";
        out->trigger = !in->text || strncmp(in->text, "quiet", 5) != 0;
        out->reason = out->trigger ? NULL : "the test wants silence";
        if (out->trigger)
                query->ask(query->arg, out);
}

static unsigned abilities(struct agents *ctx, const char *agent)
{
        struct api_rig *r = (struct api_rig *)ctx;

        return r->agent ? agents_abilities(r->agents, agent) : AGENT_REPEATABLE;
}

static void answer(struct turn_run *run)
{
        const char *text = run->inputs[0]->text ? run->inputs[0]->text : "";
        char *said = mem_printf("re: %s", text);
        struct turn_reply reply = { .text = said };

        if (strncmp(text, "fail", 4) == 0)
                reply = (struct turn_reply){ .kind = ERR_NET,
                                             .text = "Sorry, not now.",
                                             .error = "the line is dead" };
        turn_finish(run, &reply);
        free(said);
}

/* "stream ..." is answered in two pieces before the end. */
static void on_answer(void *arg)
{
        struct turn_run *run = arg;

        if (run->inputs[0]->text && strncmp(run->inputs[0]->text, "stream", 6) == 0) {
                turn_delta(run, "\nre: ", 5); /* the stored answer has no blanks around it */
                turn_delta(run, "stream", 6);
        }
        answer(run);
}

static void start(struct agents *ctx, struct turn_run *run)
{
        struct api_rig *r = (struct api_rig *)ctx;

        r->turns++;
        if (r->agent)
                agent_runs_start(r->agents, run);
        else if (run->inputs[0]->text && strncmp(run->inputs[0]->text, "hang", 4) == 0)
                r->hanging[r->hanging_count++ % API_RIG_HANGING] = run;
        else
                loop_defer(r->loop, on_answer, run);
}

static void cancel(struct agents *ctx, struct turn_run *run)
{
        struct api_rig *r = (struct api_rig *)ctx;

        if (r->agent)
                agent_runs_cancel(r->agents, run);
        for (unsigned i = 0; i < API_RIG_HANGING; i++)
                if (r->hanging[i] == run)
                        r->hanging[i] = NULL;
}

static bool answer_from_outside(struct agents *ctx, struct turn_run *run,
                                const struct turn_reply *reply)
{
        struct api_rig *r = (struct api_rig *)ctx;

        return r->agent && agent_runs_answer(r->agents, run, reply);
}

static bool late_replies(struct agents *ctx, const char *agent, struct late_reply_policy *out)
{
        return agents_late_replies(((struct api_rig *)ctx)->agents, agent, out);
}

void api_rig_release(struct api_rig *r)
{
        for (unsigned i = 0; i < API_RIG_HANGING; i++) {
                struct turn_run *run = r->hanging[i];

                r->hanging[i] = NULL;
                if (run)
                        answer(run);
        }
}

/* ---- opening ---- */

static void swallow(const char *line, void *arg)
{
        (void)line;
        (void)arg;
}

static void must(bool ok, const struct error *err)
{
        if (!ok)
                fail_msg("%s", err->text);
}

static void default_limits(struct road_limits *limits)
{
        static const struct setting *const tables[] = { road_settings, NULL };
        struct error err;
        struct settings_source *src = settings_source_new("limits", NULL, "{}", 2, &err);

        must(src && settings_read(src, "limits", settings_source_root(src), tables, NULL, limits,
                                  &err) == 0,
             &err);
        settings_source_free(src);
}

static void open_road(struct api_rig *r)
{
        struct road_env env = {
                .loop = r->loop,
                .store = r->store,
                .bus = r->bus,
                .dispatch = { .dispatch = (struct dispatch *)r, .decide = decide },
                .agents = { .agents = (struct agents *)r,
                            .abilities = abilities,
                            .start = start,
                            .cancel = cancel,
                            .answer = answer_from_outside,
                            .late_replies = late_replies },
                .platforms = { .adapters = r->adapters,
                               .abilities = adapters_abilities,
                               .ready = adapters_ready,
                               .limits = adapters_limits,
                               .channel_is_group = adapters_channel_is_group,
                               .render = adapters_render,
                               .render_card = adapters_render_card,
                               .threads = adapters_threads,
                               .send = adapters_send,
                               .reconcile = adapters_reconcile,
                               .when_unsure = adapters_when_unsure,
                               .read_from = adapters_read_from },
        };
        struct road_limits limits = { 0 };
        struct error err;

        default_limits(&limits);
        r->road = road_open(&env, &limits, &err);
        must(r->road != NULL, &err);
        adapters_set_road(r->adapters, r->road);
        must(agents_connect(r->agents, &(struct agents_env){ r->store, r->bus, r->road }, &err) ==
                     0,
             &err);
}

static void open_registries(struct api_rig *r)
{
        struct http_client_options options = { 0 };
        struct error err;

        r->http = http_client_new(r->loop, &options, &err);
        must(r->http != NULL, &err);
        r->agents = agents_new(r->loop, r->http, r->dir);
        r->adapters = adapters_new(r->loop, r->http, r->dir);
        r->dispatch = dispatch_new();
        r->policy = runtime_policy_open(r->store, r->bus, &err);
        must(r->policy != NULL, &err);
        dispatch_set_policy(r->dispatch, r->policy);
}

static void configure(struct api_rig *r)
{
        struct error err;
        struct agent_conf *agents[] = { agent_conf_make("echo", "echo", "{}", &err) };
        struct adapter_conf *adapters[] = { adapter_conf_make("api", "api", "{}", &err),
                                            adapter_conf_make("terminal", "cli", "{}", &err) };

        must(agents[0] && agents_apply(r->agents, agents, 1, &err) == 0, &err);
        must(adapters[0] && adapters[1] && adapters_apply(r->adapters, adapters, 2, &err) == 0,
             &err);
}

static bool adapter_at(void *arg, size_t i, const char **name, const char **platform)
{
        static const char *const names[][2] = { { "api", "api" }, { "terminal", "cli" } };

        (void)arg;
        if (i >= COUNT(names))
                return false;
        *name = names[i][0];
        *platform = names[i][1];
        return true;
}

static void open_schedule(struct api_rig *r)
{
        static const struct setting *const tables[] = { schedule_settings, NULL };
        struct schedule_env env = { .loop = r->loop,
                                    .store = r->store,
                                    .bus = r->bus,
                                    .road = r->road,
                                    .dir = r->dir,
                                    .adapter_at = adapter_at };
        struct schedule_conf conf = { 0 };
        struct error err;
        struct settings_source *src = settings_source_new("defaults", NULL, "{}", 2, &err);

        must(src != NULL, &err);
        must(settings_read(src, "schedule", settings_source_root(src), tables, NULL, &conf, &err) ==
                     0,
             &err);
        settings_source_free(src);
        r->schedule = schedule_open(&env, &conf, &err);
        must(r->schedule != NULL, &err);
        settings_release(tables, &conf);
}

static void open_remote(struct api_rig *r)
{
        static const struct setting *const tables[] = { remote_settings, NULL };
        struct remote_env env = {
                .loop = r->loop, .store = r->store, .bus = r->bus, .road = r->road
        };
        struct remote_conf conf = { 0 };
        struct road_remote contract;
        struct error err;
        struct settings_source *src = settings_source_new("defaults", NULL, "{}", 2, &err);

        must(src != NULL, &err);
        must(settings_read(src, "sessions", settings_source_root(src), tables, NULL, &conf, &err) ==
                     0,
             &err);
        settings_source_free(src);
        r->remote = remote_open(&env, &conf, &err);
        must(r->remote != NULL, &err);
        remote_contract(r->remote, &contract);
        dispatch_set_remote(r->dispatch, &contract);
        settings_release(tables, &conf);
}

static void open_api(struct api_rig *r, int64_t max_stream_clients)
{
        struct api_env env = { .loop = r->loop,
                               .store = r->store,
                               .bus = r->bus,
                               .road = r->road,
                               .agents = r->agents,
                               .adapters = r->adapters,
                               .dispatch = r->dispatch,
                               .schedule = r->schedule,
                               .remote = r->remote,
                               .dir = r->dir,
                               .started_ms = clock_wall_ms() };
        struct http_conf conf = { .listen = (char *)"127.0.0.1:0",
                                  .public_url = (char *)r->public_url,
                                  .max_stream_clients = max_stream_clients };
        struct error err;
        char *path = scratch_path(r->dir, "state/operator.key");
        FILE *f;

        r->api = api_open(&env, &conf, &err);
        must(r->api != NULL, &err);
        f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(r->key, sizeof(r->key), f));
        r->key[strcspn(r->key, "\n")] = '\0';
        fclose(f);
        free(path);
        path = mem_printf("http://%s/", api_address(r->api));
        agents_set_reply_base(r->agents, path);
        free(path);
}

void api_rig_restart(struct api_rig *r)
{
        api_close(r->api);
        open_api(r, 0);
}

struct api_rig *api_rig_new(void)
{
        return api_rig_new_with(0);
}

struct api_rig *api_rig_new_with(int64_t max_stream_clients)
{
        struct api_rig *r = mem_zalloc(sizeof(*r));
        struct store_options store = { .url = "sqlite", .migrations = schema_steps };
        struct bus_options bus = { .url = "local" };
        struct error err;
        char *state;

        log_divert(swallow, NULL);
        r->dir = scratch_new();
        r->loop = loop_new();
        state = scratch_path(r->dir, "state");
        assert_int_equal(mkdir(state, 0700), 0);
        store.dir = state;
        r->store = store_open(r->loop, &store, &err);
        must(r->store != NULL, &err);
        free(state);
        r->bus = bus_open(r->loop, r->store, &bus, &err);
        must(r->bus != NULL, &err);
        open_registries(r);
        open_road(r);
        open_schedule(r);
        open_remote(r);
        configure(r);
        open_api(r, max_stream_clients);
        return r;
}

void api_rig_free(struct api_rig *r)
{
        api_close(r->api);
        road_settle(r->road);
        schedule_close(r->schedule);
        remote_close(r->remote);
        road_close(r->road);
        adapters_free(r->adapters);
        agents_free(r->agents);
        http_client_free(r->http);
        runtime_policy_detach_bus(r->policy);
        bus_close(r->bus);
        store_close(r->store);
        dispatch_free(r->dispatch);
        runtime_policy_free(r->policy);
        loop_free(r->loop);
        scratch_free(r->dir);
        free(r);
        log_divert(NULL, NULL);
}

int api_rig_setup(void **state)
{
        *state = api_rig_new();
        return 0;
}

int api_rig_teardown(void **state)
{
        api_rig_free(*state);
        return 0;
}

void api_rig_dispatch(struct api_rig *r, const char *dm, const char *rules)
{
        static const char *const names[][2] = { { "api", "api" }, { "terminal", "cli" } };
        struct dispatch_adapter *a = mem_array(COUNT(names), sizeof(*a));
        char *entry = (char *)dm;
        struct setting_list list = { &entry, 1, true };
        struct access_lists lists = { .dm = &list };
        size_t count = 0;
        struct rule *read = rules ? rule_list_read(rules, &count) : NULL;

        for (size_t i = 0; i < COUNT(names); i++)
                a[i] = (struct dispatch_adapter){ .name = mem_strdup(names[i][0]),
                                                  .platform = mem_strdup(names[i][1]),
                                                  .access = dm ? access_new(&lists) : NULL,
                                                  .trusted = !dm,
                                                  .max_hops = 3 };
        dispatch_set(r->dispatch, a, COUNT(names), read, count, "echo");
        r->dispatches = true;
}

/* ---- asking ---- */

void api_rig_send(struct api_rig *r, struct http_raw *c, const char *method, const char *path,
                  const char *more, const char *body)
{
        size_t n = body ? strlen(body) : 0;
        char *text = mem_printf(
                "%s %s HTTP/1.1\r\nHost: %s\r\nx-api-key: %s\r\nContent-Length: %zu\r\n%s\r\n%s",
                method, path, api_address(r->api), r->key, n, more, body ? body : "");

        http_raw_open(c, r->loop, api_address(r->api));
        assert_true(http_raw_say(c, text));
        free(text);
}

struct api_answer api_rig_receive(struct http_raw *c)
{
        struct api_answer a = { 0 };
        const char *body;

        assert_true(http_raw_wait_answers(c, 1));
        a.status = http_raw_status(c, 0);
        a.text = mem_strdup(c->in.data);
        body = strstr(a.text, "\r\n\r\n");
        assert_non_null(body);
        a.json = json_loads(body + 4, JSON_REJECT_DUPLICATES, NULL);
        http_raw_close(c);
        return a;
}

struct api_answer api_rig_ask(struct api_rig *r, const char *method, const char *path,
                              const char *body)
{
        struct http_raw c;

        api_rig_send(r, &c, method, path, "", body);
        return api_rig_receive(&c);
}

struct api_answer api_rig_ask_as(struct api_rig *r, const char *method, const char *path,
                                 const char *headers, const char *body)
{
        size_t n = body ? strlen(body) : 0;
        char *text = mem_printf("%s %s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", method, path,
                                headers, n, body ? body : "");
        struct http_raw c;

        http_raw_open(&c, r->loop, api_address(r->api));
        assert_true(http_raw_say(&c, text));
        free(text);
        return api_rig_receive(&c);
}

char *api_rig_key_headers(struct api_rig *r, const char *body)
{
        struct api_answer a = api_rig_ask(r, "POST", "/api/v2/keys", body);
        char *headers;

        if (a.status != 201)
                fail_msg("%s", a.text);
        headers = mem_printf("Host: %s\r\nx-api-key: %s\r\n", api_address(r->api),
                             json_str(json_object_get(a.json, "data"), "key", ""));
        api_answer_release(&a);
        return headers;
}

void api_rig_expect(struct api_rig *r, const char *method, const char *path, const char *body,
                    int status, const char *part)
{
        struct api_answer a = api_rig_ask(r, method, path, body);

        if (a.status != status || (part && !strstr(a.text, part)))
                fail_msg("%s %s: wanted %d and '%s', got %s", method, path, status,
                         part ? part : "", a.text);
        api_answer_release(&a);
}

void api_answer_release(struct api_answer *a)
{
        json_decref(a->json);
        free(a->text);
        *a = (struct api_answer){ 0 };
}

static void on_tick(void *arg)
{
        (void)arg;
}

void api_rig_until(struct api_rig *r, const unsigned *counter, unsigned n)
{
        struct timer *tick = timer_new(r->loop, on_tick, NULL);
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        timer_repeat(tick, 20);
        while (*counter < n && clock_mono_ms() < deadline)
                loop_step(r->loop, true);
        timer_free(tick);
        assert_true(*counter >= n);
}
