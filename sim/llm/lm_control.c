#include "sim/llm/lm_control.h"

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/control.h"
#include "sim/llm/lm_call.h"
#include "sim/llm/lm_scenario.h"
#include "sim/llm/lm_world.h"

#define MAX_BODY ((size_t)32 << 20) /* of Anthropic's Messages */

const char lm_control_help[] =
        "  POST /sim/scenario  {\"rules\":[{\"when\":{\"user\":\"*weather*\"},\"answer\":[..]},"
        "..]};\n"
        "                      when: user, result, tool, system, model, wire (patterns), turn,\n"
        "                      round (numbers); answer: texts, {\"thinking\":..},\n"
        "                      {\"call\":\"bash\",\"arguments\":{..}}, {\"wait_ms\":..}; also\n"
        "                      times, stop, usage, error, piece_ms, piece_bytes\n"
        "  POST /sim/next      one rule, used once, before all others\n"
        "  POST /sim/keys      {\"key\":\"sk-other\"}: accepted, too\n"
        "  POST /sim/cache     {\"clear\":true}: forgets all cached prompts\n"
        "  GET  /sim/messages  answers and aborted streams: after, wait (ms), limit, kind\n"
        "                      (answer, aborted)\n"
        "  GET  /sim/calls     requests with their bodies: after, wait, limit, kind (messages,\n"
        "                      count_tokens, chat, responses, models), valid=false: refused ones\n"
        "  GET  /sim/state     counters, refusals by reason, settings\n"
        "  POST /sim/settings  {\"strict\":true,\"limits\":true,\"record_calls\":true,"
        "\"piece_bytes\":24,\n"
        "                      \"piece_ms\":0,\"first_ms\":0,\"window\":0,\"cache_ms\":300000,..}\n"
        "  POST /sim/faults    {\"kind\":\"cut_at\",\"at\":500,\"method\":\"messages\","
        "\"next\":3}, or with\n"
        "                      \"probability\"; kinds: cut_before, cut_after, cut_at (bytes),\n"
        "                      cut_pieces (events), overload, slow (ms), slow_pieces (ms), mute,\n"
        "                      error (status), flood (retry_after), bad_json, truncate, empty,\n"
        "                      same_index, no_done, pause, refuse, overflow; also \"seed\"\n"
        "  DELETE /sim/faults  ends them; GET lists them\n";

static void run_state(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        struct buf b = control_begin();

        jsonw_open_member(&b, "counters", '{');
        world_base_write_counters(&w->base, &b);
        jsonw_int(&b, "answers", (int64_t)w->answer_count);
        jsonw_int(&b, "aborted", (int64_t)w->aborted_count);
        jsonw_close(&b, '}');
        lm_world_write_refusals(w, &b);
        jsonw_int(&b, "rules", (int64_t)json_array_size(w->rules));
        control_write_state(w, &b);
        control_answer(x, &b);
}

static int add_key(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        const char *key = json_str(request, "key", "");

        if (!*key)
                return error_set(err, ERR_INVALID, "'key' must be a text");
        lm_world_add_key(w, key);
        jsonw_int(out, "keys", (int64_t)w->keys.count);
        return 0;
}

static int clear_cache(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        (void)out;
        if (!json_flag(request, "clear", false))
                return error_set(err, ERR_INVALID, "expected {\"clear\":true}");
        lm_cache_clear(w->cache);
        return 0;
}

const struct http_route lm_control_routes[] = {
        { "POST", "/v1/messages", lm_call_serve_messages, MAX_BODY, NULL },
        { "POST", "/v1/messages/count_tokens", lm_call_serve_count, MAX_BODY, NULL },
        { "POST", "/v1/chat/completions", lm_call_serve_chat, MAX_BODY, NULL },
        { "POST", "/v1/responses", lm_call_serve_responses, MAX_BODY, NULL },
        { "GET", "/v1/models", lm_call_serve_models, 0, NULL },
        { "GET", "/v1/models/:id", lm_call_serve_model, 0, NULL },
        CONTROL_SHARED(lm_control_help),
        { "GET", "/sim/state", run_state, 0, NULL },
        CONTROL_POST("/sim/scenario", lm_scenario_set),
        CONTROL_POST("/sim/next", lm_scenario_next),
        CONTROL_POST("/sim/keys", add_key),
        CONTROL_POST("/sim/cache", clear_cache),
};
const size_t lm_control_route_count = COUNT(lm_control_routes);
