/* Requests that every service accepts, out of any list of messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/llm/llm_transcript.h"
#include "model_rig.h"

static struct llm_conf conf = { .stream = true,
                                .temperature = -1,
                                .prices = { -1, -1, -1, -1, -1 } };

static struct llm model_of(const struct llm_wire *wire, const char *model)
{
        return (struct llm){ .conf = &conf,
                             .wire = wire,
                             .model = model,
                             .base = (char *)wire->base,
                             .query = (char *)"" };
}

/* ---- building ---- */

#define CALL(id) "{'type':'toolCall','id':'" id "','name':'read','arguments':{}}"
#define RESULT(id, text)                                                                          \
        "{'role':'toolResult','toolCallId':'" id "','toolName':'read','content':[{'type':'text'," \
        "'text':'" text "'}],'isError':false}"
#define USER(text)    "{'role':'user','content':[{'type':'text','text':'" text "'}]}"
#define SAYS(content) "{'role':'assistant','content':[" content "],'stopReason':'stop'}"
#define MISSING(id)                                                                               \
        "{'role':'toolResult','toolCallId':'" id "','toolName':'read','content':[{'type':'text'," \
        "'text':'No result: the call was interrupted. It may have taken effect; check before "    \
        "repeating it.'}],'isError':true}"

/* clang-format off */
static const struct {
        const char *what, *given, *built;
} rows[] = {
        { "a result that is missing", "[" USER("hi") "," SAYS(CALL("a")) "," USER("go on") "]",
          "[" USER("hi") "," SAYS(CALL("a")) "," MISSING("a") "," USER("go on") "]" },
        { "results in another order, with a message in between",
          "[" USER("hi") "," SAYS(CALL("a") "," CALL("b")) "," RESULT("b", "B") "," USER(
                  "stop") "," RESULT("a", "A") "]",
          "[" USER("hi") "," SAYS(CALL("a") "," CALL("b")) "," RESULT("a", "A") "," RESULT(
                  "b", "B") "," USER("stop") "]" },
        { "a result without call, and one that comes twice",
          "[" USER("hi") "," RESULT("x", "X") "," SAYS(CALL("a")) "," RESULT("a", "A") "," RESULT(
                  "a", "again") "," USER("ok") "]",
          "[" USER("hi") "," SAYS(CALL("a")) "," RESULT("a", "A") "," USER("ok") "]" },
        { "ids that a server uses again",
          "[" USER("hi") "," SAYS(CALL("a")) "," RESULT("a", "1") "," SAYS(CALL("a")) "," RESULT(
                  "a", "2") "]",
          "[" USER("hi") "," SAYS(CALL("a")) "," RESULT("a", "1") "," SAYS(CALL("a_2")) "," RESULT(
                  "a_2", "2") "]" },
        { "a second call with the id, the first without result",
          "[" USER("hi") "," SAYS(CALL("a")) "," SAYS(CALL("a")) "," RESULT("a", "2") "]",
          "[" USER("hi") "," SAYS(CALL("a")) "," MISSING("a") "," SAYS(CALL("a_2")) "," RESULT(
                  "a_2", "2") "]" },
        { "ids with other characters, and long ones",
          "[" USER("hi") "," SAYS(CALL("a.b:c")) "," RESULT("a.b:c", "1") "," SAYS(CALL(
                  "0123456789012345678901234567890123456789x")) ","
          RESULT("0123456789012345678901234567890123456789x",
                                                                           "2") "]",
          "[" USER("hi") "," SAYS(CALL("a_b_c_c9afe4b3")) "," RESULT("a_b_c_c9afe4b3", "1") ","
          SAYS(
                  CALL("0123456789012345678901234567890_e5519517")) ","
          RESULT("0123456789012345678901234567890_e5519517",
                                                                               "2") "]" },
        { "blank blocks and messages",
          "[" USER(" ") ",{'role':'user','content':[{'type':'text','text':'\\n'},{'type':'text',"
                        "'text':'hi'}]}," SAYS("{'type':'text','text':''}") "," USER("yes") "]",
          "[" USER("hi") "," USER("yes") "]" },
        { "a result without output",
          "[" USER("hi") "," SAYS(
                  CALL("a")) ",{'role':'toolResult','toolCallId':'a','content':[]}]",
          "[" USER("hi") "," SAYS(CALL("a")) "," RESULT("a", "(no output)") "]" },
        { "an answer that failed",
          "[" USER("hi") ",{'role':'assistant','content':[{'type':'text','text':'Ha'}," CALL(
                  "a") "],'stopReason':'error'}," RESULT("a", "1") "," USER("again") "]",
          "[" USER("hi") "," USER("again") "]" },
        { "the thinking of another model",
          "[" USER("hi") "," SAYS("{'type':'thinking','thinking':'hm','thinkingSignature':'s'},"
                                  "{'type':'text','text':'Ho'}") "," USER("ok") "]",
          "[" USER("hi") "," SAYS("{'type':'text','text':'Ho'}") "," USER("ok") "]" },
        { "nothing but thinking",
          "[" USER(
                  "hi") ",{'role':'assistant','api':'anthropic-messages','provider':'anthropic',"
          "'model':'m','stopReason':'stop','content':[{'type':'thinking','thinking':'hm',"
                        "'thinkingSignature':'s'}]}," USER("ok") "]",
          "[" USER("hi") "," USER("ok") "]" },
        { "the model first and last", "[" SAYS("{'type':'text','text':'Ho'}") "]",
          "[" USER("(The conversation began earlier.)") "," SAYS(
                  "{'type':'text','text':'Ho'}") "," USER("Please continue.") "]" },
        { "content that is a string",
          "[{'role':'user','content':'hi'},{'role':'assistant','content':'Ho','stopReason':'stop'},"
          USER(
                  "ok") "]",
          "[" USER("hi") "," SAYS("{'type':'text','text':'Ho'}") "," USER("ok") "]" },
        { "an image that is gone, and one that nobody can see",
          "[{'role':'user','content':[{'type':'image','blob':'ab','name':'x.png'},{'type':'image',"
          "'mimeType':'image/svg+xml','data':'PHN2Zz4='}]}]",
          "[{'role':'user','content':[{'type':'text','text':'[image x.png is not available]'},"
          "{'type':'text','text':'[image has a type that cannot be shown]'}]}]" },
        { "a document that is text",
          "[{'role':'user','content':[{'type':'document','mimeType':'text/csv','name':'a.csv',"
          "'data':'YSxiCg=='}]}]",
          "[" USER("a.csv:\\n\\na,b\\n") "]" },
        { "garbage",
          "[7,null,{},{'role':5},{'role':'user'},{'role':'user','content':{}},{'role':'user',"
          "'content':[1,{'type':'video'}]}," USER("hi") ",{'role':'assistant','content':[null,"
                                                        "{'type':'toolCall'}]}]",
          "[" USER(
                  "hi") ",{'role':'assistant','content':[{'type':'toolCall','id':'_811c9dc5',"
          "'name':'unnamed','arguments':{}}],'stopReason':''},{'role':'toolResult','toolCallId':"
          "'_811c9dc5','toolName':'unnamed','content':[{'type':'text',"
          "'text':'No result: the call was "
          "interrupted. It may have taken effect; check before repeating it.'}],'isError':true}]" },
};
/* clang-format on */

static void a_transcript_is_made_valid(void **state)
{
        struct llm m = model_of(&anthropic_wire, "m");

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *given = json_of(rows[i].given), *built = llm_transcript_build(given, &m);
                struct error err = { 0 };

                print_message("             %s\n", rows[i].what);
                assert_json(built, rows[i].built);
                if (model_check(built, &err) < 0)
                        fail_msg("%s", err.text);
                json_decref(given);
                json_decref(built);
        }
}

#undef CALL
#undef RESULT
#undef USER
#undef SAYS
#undef MISSING

static void the_check_names_the_message_and_the_fault(void **state)
{
        static const struct {
                const char *messages, *fault;
        } wrong[] = {
                { "[]", "there are no messages" },
                { "[{'role':'user','content':[]}]", "message 0 (user): it has no content" },
                { "[{'role':'user','content':[{'type':'text','text':' '}]}]", "is blank" },
                { "[{'role':'system','content':'x'}]", "message 0 (system): the role is" },
                { "[{'role':'user','content':'x'},{'role':'toolResult','toolCallId':'a','content':"
                  "[{'type':'text','text':'x'}]}]",
                  "message 1 (toolResult): a result without its call" },
                { "[{'role':'assistant','content':[{'type':'toolCall','id':'a','name':'n',"
                  "'arguments':{}}]},{'role':'user','content':'x'}]",
                  "message 1 (user): the result of a call must be here" },
                { "[{'role':'assistant','content':[{'type':'toolCall','id':'a','name':'n',"
                  "'arguments':{}}]}]",
                  "the result of a call must be here" },
                { "[{'role':'assistant','content':[{'type':'toolCall','id':'a','name':'n',"
                  "'arguments':'{}'}]}]",
                  "not an object" },
                { "[{'role':'user','content':'x'},{'role':'assistant','content':'y'}]",
                  "must not be the model's" },
                { "[{'role':'user','content':[{'type':'image'}]}]", "has no data" },
                { "[{'role':'user','content':[{'type':'toolCall'}]}]", "does not belong there" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(wrong); i++) {
                json_t *messages = json_of(wrong[i].messages);
                struct error err = { 0 };

                assert_int_equal(model_check(messages, &err), -1);
                if (!strstr(err.text, wrong[i].fault))
                        fail_msg("'%s' is not in '%s'", wrong[i].fault, err.text);
                json_decref(messages);
        }
}

/* ---- writing ---- */

/* The request as JSON; q's messages and tools are text here. */
static json_t *written(const struct llm *m, struct model_request q, const char *messages,
                       const char *tools)
{
        struct llm_request r;
        struct buf out;
        json_t *body;

        q.messages = json_of(messages);
        q.tools = tools ? json_of(tools) : NULL;
        buf_init(&out, 0);
        llm_request_init(&r, m, &q);
        m->wire->write(m, &r, &out);
        body = json_loads(out.data, 0, NULL);
        if (!body)
                fail_msg("not JSON: %s", out.data);
        llm_request_release(&r);
        json_decref(q.messages);
        json_decref(q.tools);
        buf_release(&out);
        return body;
}

#define HISTORY                                                                                   \
        "[{'role':'user','content':[{'type':'text','text':'look'},{'type':'image','mimeType':"    \
        "'image/png','data':'iVBO'}]},"                                                           \
        "{'role':'assistant','api':'%s','provider':'%s','model':'%s','stopReason':'toolUse',"     \
        "'content':[{'type':'thinking','thinking':'hm','thinkingSignature':'%s'},{'type':'text'," \
        "'text':'Wait.'},{'type':'toolCall','id':'a','name':'read','arguments':{'p':'x'}},"       \
        "{'type':'toolCall','id':'b','name':'my.tool','arguments':{}}]},"                         \
        "{'role':'toolResult','toolCallId':'a','content':[{'type':'text','text':'A'},"            \
        "{'type':'image','mimeType':'image/png','data':'iVBO'}]},"                                \
        "{'role':'toolResult','toolCallId':'b','content':[{'type':'text','text':'no'}],"          \
        "'isError':true},"                                                                        \
        "{'role':'user','content':[{'type':'text','text':'and?'}]}]"
#define TOOLS                                                                                    \
        "[{'name':'read','description':'reads','parameters':{'type':'object','properties':{}}}," \
        "{'name':'my.tool'}]"

static json_t *written_history(const struct llm *m, struct model_request q, const char *signature)
{
        char *history = mem_printf(HISTORY, m->wire->api, m->wire->service, m->model, signature);
        json_t *body = written(m, q, history, TOOLS);

        free(history);
        return body;
}

static void a_request_of_the_messages_api(void **state)
{
        struct llm m = model_of(&anthropic_wire, "claude-sonnet-4-5");
        json_t *body = written_history(&m,
                                       (struct model_request){ .system = "Be brief.",
                                                               .cache_key = "c-1",
                                                               .max_tokens = 4000,
                                                               .thinking = THINKING_LOW },
                                       "sig");

        (void)state;
        assert_json(body,
                    "{'model':'claude-sonnet-4-5','max_tokens':4000,'tools':["
                    "{'name':'my_tool_177d3031','input_schema':{'type':'object','properties':{}}},"
                    "{'name':'read','description':'reads','input_schema':{'type':'object',"
                    "'properties':{}}}],"
                    "'system':[{'type':'text','text':'Be brief.','cache_control':{'type':"
                    "'ephemeral'}}],"
                    "'messages':[{'role':'user','content':[{'type':'text','text':'look'},{'type':"
                    "'image','source':{'type':'base64','media_type':'image/png','data':'iVBO'},"
                    "'cache_control':{'type':'ephemeral'}}]},"
                    "{'role':'assistant','content':[{'type':'thinking','thinking':'hm','signature':"
                    "'sig'},{'type':'text','text':'Wait.'},{'type':'tool_use','id':'a','name':"
                    "'read','input':{'p':'x'}},{'type':'tool_use','id':'b','name':"
                    "'my_tool_177d3031','input':{}}]},"
                    "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a','content':["
                    "{'type':'text','text':'A'},{'type':'image','source':{'type':'base64',"
                    "'media_type':'image/png','data':'iVBO'}}]},{'type':'tool_result',"
                    "'tool_use_id':'b','content':[{'type':'text','text':'no'}],'is_error':true,"
                    "'cache_control':{'type':'ephemeral'}},"
                    "{'type':'text','text':'and?','cache_control':{'type':'ephemeral'}}]}],"
                    "'metadata':{'user_id':'c-1'},'thinking':{'type':'enabled','budget_tokens':"
                    "2000},'stream':true}");
        json_decref(body);
}

static void a_request_of_chat_completions(void **state)
{
        struct llm m = model_of(&openai_wire, "gpt-5");
        json_t *body = written_history(&m,
                                       (struct model_request){ .system = "Be brief.",
                                                               .cache_key = "c-1",
                                                               .max_tokens = 4000,
                                                               .thinking = THINKING_OFF },
                                       "reasoning_content");

        (void)state;
        assert_json(body,
                    "{'model':'gpt-5','messages':[{'role':'developer','content':'Be brief.'},"
                    "{'role':'user','content':[{'type':'text','text':'look'},{'type':'image_url',"
                    "'image_url':{'url':'data:image/png;base64,iVBO'}}]},"
                    "{'role':'assistant','content':'Wait.','reasoning_content':'hm','tool_calls':["
                    "{'id':'a','type':'function','function':{'name':'read','arguments':"
                    "'{\\\"p\\\":\\\"x\\\"}'}},{'id':'b','type':'function','function':{'name':"
                    "'my_tool_177d3031','arguments':'{}'}}]},"
                    "{'role':'tool','tool_call_id':'a','content':'A'},"
                    "{'role':'tool','tool_call_id':'b','content':'Error: no'},"
                    "{'role':'user','content':[{'type':'image_url','image_url':{'url':"
                    "'data:image/png;base64,iVBO'}},{'type':'text','text':'and?'}]}],"
                    "'tools':[{'type':'function','function':{'name':'my_tool_177d3031',"
                    "'parameters':{'type':'object','properties':{}}}},{'type':'function',"
                    "'function':{'name':'read','description':'reads','parameters':{'type':'object',"
                    "'properties':{}}}}],"
                    "'prompt_cache_key':'c-1','max_completion_tokens':4000,'reasoning_effort':"
                    "'minimal','store':false,'stream':true,'stream_options':{'include_usage':"
                    "true}}");
        json_decref(body);
}

#define ITEM "{\\\"type\\\":\\\"reasoning\\\",\\\"id\\\":\\\"rs_1\\\",\\\"summary\\\":[]}"

static void a_request_of_responses(void **state)
{
        struct llm m = model_of(&responses_wire, "gpt-5");
        json_t *body = written_history(&m,
                                       (struct model_request){ .system = "Be brief.",
                                                               .cache_key = "c-1",
                                                               .max_tokens = 4,
                                                               .thinking = THINKING_HIGH },
                                       ITEM);

        (void)state;
        assert_json(body,
                    "{'model':'gpt-5','instructions':'Be brief.','input':["
                    "{'role':'user','content':[{'type':'input_text','text':'look'},{'type':"
                    "'input_image','detail':'auto','image_url':'data:image/png;base64,iVBO'}]},"
                    "{'type':'reasoning','id':'rs_1','summary':[]},"
                    "{'type':'message','role':'assistant','id':'msg_1001','status':'completed',"
                    "'content':[{'type':'output_text','text':'Wait.','annotations':[]}]},"
                    "{'type':'function_call','call_id':'a','name':'read','arguments':"
                    "'{\\\"p\\\":\\\"x\\\"}'},"
                    "{'type':'function_call','call_id':'b','name':'my_tool_177d3031','arguments':"
                    "'{}'},"
                    "{'type':'function_call_output','call_id':'a','output':[{'type':'input_text',"
                    "'text':'A'},{'type':'input_image','detail':'auto','image_url':"
                    "'data:image/png;base64,iVBO'}]},"
                    "{'type':'function_call_output','call_id':'b','output':'Error: no'},"
                    "{'role':'user','content':[{'type':'input_text','text':'and?'}]}],"
                    "'tools':[{'type':'function','name':'my_tool_177d3031','parameters':{'type':"
                    "'object','properties':{}},'strict':false},{'type':'function','name':'read',"
                    "'description':'reads','parameters':{'type':'object','properties':{}},"
                    "'strict':false}],"
                    "'include':['reasoning.encrypted_content'],'reasoning':{'effort':'high',"
                    "'summary':'auto'},'max_output_tokens':16,'prompt_cache_key':'c-1',"
                    "'store':false,'stream':true}");
        json_decref(body);
}

/* ---- the cache ---- */

static size_t count_marks(json_t *value, bool remove)
{
        size_t n = 0, i;
        const char *key;
        json_t *member;

        if (json_is_object(value) && json_object_get(value, "cache_control")) {
                n++;
                if (remove)
                        json_object_del(value, "cache_control");
        }
        json_object_foreach(value, key, member) {
                n += count_marks(member, remove);
        }
        json_array_foreach(value, i, member) {
                n += count_marks(member, remove);
        }
        return n;
}

/* All blocks in the order in which the service compares them. */
static json_t *blocks_of(const json_t *body)
{
        json_t *blocks = json_array(), *message, *block;
        size_t i, k;

        json_array_extend(blocks, json_object_get(body, "tools"));
        json_array_extend(blocks, json_object_get(body, "system"));
        json_array_foreach(json_object_get(body, "messages"), i, message) {
                json_t *content = json_object_get(message, "content");

                if (json_is_string(content))
                        json_array_append_new(
                                blocks, json_pack("{ss, sO}", "type", "text", "text", content));
                json_array_foreach(content, k, block) {
                        json_array_append(blocks, block);
                }
        }
        return blocks;
}

static long last_mark(const json_t *blocks, size_t before)
{
        for (size_t i = before; i > 0; i--) {
                if (json_object_get(json_array_get(blocks, i - 1), "cache_control"))
                        return (long)i - 1;
        }
        return -1;
}

/*
 * A conversation of many rounds, one with 40 calls at once: each request finds all of the previous
 * one in the cache, and none has more than four marks.
 */
static void each_request_reads_what_the_last_one_wrote(void **state)
{
        struct llm m = model_of(&anthropic_wire, "claude-sonnet-4-5");
        struct model_request q = { .system = "Be brief.", .messages = json_array() };
        json_t *before = NULL, *tools = json_of(TOOLS);

        (void)state;
        q.tools = tools;
        for (int round = 0; round < 12; round++) {
                int calls = round == 5 ? 40 : round % 3;
                json_t *content = json_array(), *body, *blocks, *bare;
                struct llm_request r;
                struct buf out;

                if (round % 3 == 0)
                        json_array_append_new(
                                q.messages, json_pack("{ss, ss}", "role", "user", "content", "go"));
                buf_init(&out, 0);
                llm_request_init(&r, &m, &q);
                m.wire->write(&m, &r, &out);
                body = json_loads(out.data, 0, NULL);
                assert_non_null(body);
                assert_true(count_marks(body, false) >= 2 && count_marks(body, false) <= 4);
                blocks = blocks_of(body);
                if (before) {
                        /* a mark stands exactly where the last request had its newest block */
                        assert_true(
                                json_object_get(json_array_get(blocks, json_array_size(before) - 1),
                                                "cache_control"));
                        bare = json_deep_copy(blocks);
                        count_marks(bare, true);
                        for (size_t i = 0; i < json_array_size(before); i++)
                                assert_true(json_equal(json_array_get(bare, i),
                                                       json_array_get(before, i)));
                        json_decref(bare);
                }
                assert_int_equal(last_mark(blocks, json_array_size(blocks)),
                                 json_array_size(blocks) - 1);
                count_marks(blocks, true);
                json_decref(before);
                before = blocks;
                json_decref(body);
                llm_request_release(&r);
                buf_release(&out);

                json_array_append_new(content, json_pack("{ss, ss}", "type", "text", "text", "ok"));
                for (int i = 0; i < calls; i++) {
                        char id[32];

                        snprintf(id, sizeof(id), "c-%d-%d", round, i);
                        json_array_append_new(content,
                                              json_pack("{ss, ss, ss, s{}}", "type", "toolCall",
                                                        "id", id, "name", "read", "arguments"));
                }
                json_array_append_new(
                        q.messages, json_pack("{ss, so}", "role", "assistant", "content", content));
                for (int i = 0; i < calls; i++) {
                        char id[32];

                        snprintf(id, sizeof(id), "c-%d-%d", round, i);
                        json_array_append_new(q.messages,
                                              json_pack("{ss, ss, ss}", "role", "toolResult",
                                                        "toolCallId", id, "content", "done"));
                }
                if (calls == 0)
                        json_array_append_new(q.messages, json_pack("{ss, ss}", "role", "user",
                                                                    "content", "and?"));
        }
        json_decref(before);
        json_decref(tools);
        json_decref(q.messages);
}

static void compaction_writes_nothing_to_the_cache(void **state)
{
        struct llm m = model_of(&anthropic_wire, "claude-sonnet-4-5");
        json_t *body = written(&m, (struct model_request){ .system = "Sum up.", .no_cache = true },
                               "[{'role':'user','content':'x'}]", TOOLS);

        (void)state;
        assert_int_equal(count_marks(body, false), 0);
        json_decref(body);
}

static void without_a_system_prompt_the_last_tool_is_marked(void **state)
{
        struct llm m = model_of(&anthropic_wire, "claude-sonnet-4-5");
        json_t *body = written(&m, (struct model_request){ .system = " " },
                               "[{'role':'user','content':'x'}]", TOOLS);
        const json_t *tools = json_object_get(body, "tools");

        (void)state;
        assert_null(json_object_get(body, "system"));
        assert_null(json_object_get(json_array_get(tools, 0), "cache_control"));
        assert_non_null(json_object_get(json_array_get(tools, 1), "cache_control"));
        json_decref(body);
}

/* ---- servers ---- */

static json_t *chat_body(char *server, const char *model, enum model_thinking thinking)
{
        struct llm m = model_of(&openai_wire, model);
        struct llm_conf other = conf;

        other.server = server;
        m.conf = &other;
        m.base = (char *)"http://127.0.0.1:9/v1";
        return written(&m, (struct model_request){ .thinking = thinking, .max_tokens = 100 },
                       "[{'role':'user','content':'x'},{'role':'assistant','content':'y'},"
                       "{'role':'user','content':'z'}]",
                       NULL);
}

static void servers_of_chat_completions_differ(void **state)
{
        static const struct {
                const char *server;
                enum model_thinking thinking;
                const char *member, *value;
        } differences[] = {
                { "auto", THINKING_DEFAULT, "reasoning_effort", NULL },
                { "auto", THINKING_HIGH, "reasoning_effort", "'high'" },
                { "auto", THINKING_HIGH, "max_tokens", "100" },
                { "auto", THINKING_HIGH, "store", NULL },
                { "openai", THINKING_OFF, "max_completion_tokens", "100" },
                { "openai", THINKING_OFF, "reasoning_effort", "'none'" },
                { "openai", THINKING_OFF, "store", "false" },
                { "deepseek", THINKING_LOW, "thinking", "{'type':'enabled'}" },
                { "deepseek", THINKING_LOW, "reasoning_effort", "'low'" },
                { "deepseek", THINKING_OFF, "thinking", "{'type':'disabled'}" },
                { "qwen", THINKING_MEDIUM, "enable_thinking", "true" },
                { "qwen", THINKING_MEDIUM, "thinking_budget", "8192" },
                { "qwen", THINKING_OFF, "enable_thinking", "false" },
                { "vllm", THINKING_OFF, "chat_template_kwargs", "{'enable_thinking':false}" },
                { "llama.cpp", THINKING_LOW, "chat_template_kwargs", "{'enable_thinking':true}" },
                { "llama.cpp", THINKING_LOW, "thinking_budget_tokens", "2048" },
                { "ollama", THINKING_LOW, "reasoning_effort", "'low'" },
                { "openrouter", THINKING_LOW, "reasoning", "{'effort':'low'}" },
                { "kimi", THINKING_LOW, "thinking", "{'type':'enabled'}" },
                { "mistral", THINKING_LOW, "reasoning_effort", NULL },
                { "cerebras", THINKING_LOW, "max_completion_tokens", "100" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(differences); i++) {
                char *server = mem_strdup(differences[i].server);
                json_t *body = chat_body(server, "m", differences[i].thinking);
                const json_t *member = json_object_get(body, differences[i].member);

                print_message("             %s: %s\n", server, differences[i].member);
                if (differences[i].value)
                        assert_json(member, differences[i].value);
                else
                        assert_null(member);
                json_decref(body);
                free(server);
        }
}

static void a_router_gets_marks_for_models_of_anthropic(void **state)
{
        char router[] = "openrouter";
        json_t *body = chat_body(router, "anthropic/claude-sonnet-4-5", THINKING_DEFAULT);
        json_t *other = chat_body(router, "google/gemini", THINKING_DEFAULT);

        (void)state;
        assert_json(json_object_get(body, "messages"),
                    "[{'role':'user','content':[{'type':'text','text':'x','cache_control':{'type':"
                    "'ephemeral'}}]},{'role':'assistant','content':'y'},{'role':'user','content':["
                    "{'type':'text','text':'z','cache_control':{'type':'ephemeral'}}]}]");
        assert_int_equal(count_marks(other, false), 0);
        json_decref(body);
        json_decref(other);
}

/* A tool loop that another model began has no thoughts the service would accept. */
static void thinking_begins_with_a_turn(void **state)
{
        static const char loop[] =
                "[{'role':'user','content':'x'},{'role':'assistant','content':[{'type':'toolCall',"
                "'id':'a','name':'read','arguments':{}}]},{'role':'toolResult','toolCallId':'a',"
                "'content':'A'}%s]";
        static const struct {
                const char *model, *more;
                bool thinks;
        } rows_[] = {
                { "claude-sonnet-4-5", "", false },
                { "claude-sonnet-4-5", ",{'role':'user','content':'and?'}", true },
                { "claude-sonnet-4-6", "", true },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows_); i++) {
                struct llm m = model_of(&anthropic_wire, rows_[i].model);
                char *messages = mem_printf(loop, rows_[i].more);
                json_t *body = written(&m, (struct model_request){ .thinking = THINKING_LOW },
                                       messages, TOOLS);

                assert_int_equal(json_object_get(body, "thinking") != NULL, rows_[i].thinks);
                free(messages);
                json_decref(body);
        }
}

/* DeepSeek refuses a conversation in which one answer lacks the field. */
static void every_answer_goes_back_with_its_thinking_where_it_must(void **state)
{
        char deepseek[] = "deepseek", other[] = "other";
        json_t *body = chat_body(deepseek, "m", THINKING_HIGH);
        json_t *without = chat_body(other, "m", THINKING_HIGH);

        (void)state;
        assert_json(json_array_get(json_object_get(body, "messages"), 1),
                    "{'role':'assistant','content':'y','reasoning_content':''}");
        assert_json(json_array_get(json_object_get(without, "messages"), 1),
                    "{'role':'assistant','content':'y'}");
        json_decref(body);
        json_decref(without);
}

static void details_of_reasoning_go_back_unchanged(void **state)
{
        struct llm m = model_of(&openai_wire, "x/y");
        json_t *body =
                written(&m, (struct model_request){ 0 },
                        "[{'role':'user','content':'x'},{'role':'assistant','api':"
                        "'openai-completions','provider':'openai','model':'x/y','content':["
                        "{'type':'thinking','thinking':'hm','thinkingSignature':"
                        "'[{\\\"type\\\":\\\"reasoning.text\\\"}]'},{'type':'text','text':'y'}]},"
                        "{'role':'user','content':'z'}]",
                        NULL);

        (void)state;
        assert_json(json_array_get(json_object_get(body, "messages"), 1),
                    "{'role':'assistant','content':'y','reasoning_details':[{'type':"
                    "'reasoning.text'}]}");
        json_decref(body);
}

/* Items without their reasoning are refused by id. */
static void ids_of_responses_go_back_only_with_their_reasoning(void **state)
{
        static const char said[] =
                "[{'role':'user','content':'x'},{'role':'assistant','api':'openai-responses',"
                "'provider':'openai','model':'%s','content':[%s{'type':'text','text':'y',"
                "'textSignature':'{\\\"v\\\":1,\\\"id\\\":\\\"msg_7\\\",\\\"phase\\\":"
                "\\\"commentary\\\"}'},{'type':'toolCall','id':'call_1|fc_1','name':'read',"
                "'arguments':{}}]},{'role':'toolResult','toolCallId':'call_1|fc_1','content':'A'}]";
        static const char thinking[] =
                "{'type':'thinking','thinking':'','thinkingSignature':'" ITEM "'},";
        static const struct {
                const char *model, *before, *text_id, *call_id;
                size_t items;
        } cases[] = {
                { "gpt-5", thinking, "msg_7", "fc_1", 5 },
                { "gpt-5", "", "msg_1000", NULL, 4 },
                { "gpt-4o", thinking, "msg_1000", NULL, 4 }, /* another model's */
        };
        struct llm m = model_of(&responses_wire, "gpt-5");

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                char *messages = mem_printf(said, cases[i].model, cases[i].before);
                json_t *body = written(&m, (struct model_request){ 0 }, messages, NULL);
                const json_t *input = json_object_get(body, "input");
                size_t n = json_array_size(input);
                const json_t *text = json_array_get(input, n - 3),
                             *call = json_array_get(input, n - 2);

                assert_int_equal(n, cases[i].items);
                assert_string_equal(json_str(text, "id", ""), cases[i].text_id);
                assert_string_equal(json_str(call, "id", "none"),
                                    cases[i].call_id ? cases[i].call_id : "none");
                assert_string_equal(json_str(call, "call_id", ""), "call_1");
                free(messages);
                json_decref(body);
        }
}

static void tools_that_are_gone_are_declared_where_they_must_be(void **state)
{
        static const char messages[] =
                "[{'role':'user','content':'x'},{'role':'assistant','content':[{'type':'toolCall',"
                "'id':'a','name':'read','arguments':{}}]},{'role':'toolResult','toolCallId':'a',"
                "'content':'A'}]";
        struct llm claude = model_of(&anthropic_wire, "claude-sonnet-4-5");
        struct llm gpt = model_of(&openai_wire, "gpt-5");
        json_t *body = written(&claude, (struct model_request){ 0 }, messages, NULL);
        json_t *chat = written(&gpt, (struct model_request){ 0 }, messages, NULL);

        (void)state;
        assert_json(json_object_get(body, "tools"),
                    "[{'name':'read','description':'No longer available.','input_schema':{'type':"
                    "'object','properties':{}}}]");
        assert_json(json_object_get(body, "tool_choice"), "{'type':'none'}");
        assert_json(json_object_get(chat, "tools"), "[]");
        json_decref(body);
        json_decref(chat);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_transcript_is_made_valid),
                cmocka_unit_test(the_check_names_the_message_and_the_fault),
                cmocka_unit_test(a_request_of_the_messages_api),
                cmocka_unit_test(a_request_of_chat_completions),
                cmocka_unit_test(a_request_of_responses),
                cmocka_unit_test(each_request_reads_what_the_last_one_wrote),
                cmocka_unit_test(compaction_writes_nothing_to_the_cache),
                cmocka_unit_test(without_a_system_prompt_the_last_tool_is_marked),
                cmocka_unit_test(servers_of_chat_completions_differ),
                cmocka_unit_test(a_router_gets_marks_for_models_of_anthropic),
                cmocka_unit_test(thinking_begins_with_a_turn),
                cmocka_unit_test(every_answer_goes_back_with_its_thinking_where_it_must),
                cmocka_unit_test(details_of_reasoning_go_back_unchanged),
                cmocka_unit_test(ids_of_responses_go_back_only_with_their_reasoning),
                cmocka_unit_test(tools_that_are_gone_are_declared_where_they_must_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
