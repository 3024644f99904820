/* What is made of the streams of services: one row per stream, fed in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_rig.h"

struct stream {
        const char *what;
        const struct llm_wire *wire;
        const char *events;  /* data of the events, one per line; "\n\n" as written */
        const char *content; /* expected */
        enum llm_stop stop;
        bool incomplete;       /* not an answer: it ended too early */
        enum error_kind fails; /* ERR_NONE: it does not */
};

/* clang-format off */
#define START "{'type':'message_start','message':{'id':'msg_1','model':'claude'," \
        "'usage':{'input_tokens':7,'output_tokens':1}}}\n"
#define BLOCK(i, block) "{'type':'content_block_start','index':" i ",'content_block':" block "}\n"
#define DELTA(i, delta) "{'type':'content_block_delta','index':" i ",'delta':" delta "}\n"
#define STOP(i) "{'type':'content_block_stop','index':" i "}\n"
#define REASON(r) "{'type':'message_delta','delta':{'stop_reason':'" r "'," \
        "'stop_sequence':null},'usage':{'output_tokens':9}}\n"
#define END "{'type':'message_stop'}\n"
#define TOOL "{'type':'tool_use','id':'toolu_1','name':'read','input':{}}"
#define ARGS(i, text) DELTA(i, "{'type':'input_json_delta','partial_json':'" text "'}")

static const struct stream anthropic[] = {
        { "text", &anthropic_wire,
          START BLOCK("0", "{'type':'text','text':'He'}") DELTA("0", "{'type':'text_delta',"
          "'text':'llo'}")
          STOP("0") REASON("end_turn") END,
          "[{'type':'text','text':'Hello'}]", LLM_STOPPED },
        { "a call without argument delta", &anthropic_wire,
          START BLOCK("0", TOOL) STOP("0") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "an empty argument delta", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "") STOP("0") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "escapes and a surrogate pair split over deltas", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "{\\\"a\\\": \\\"x\\\\") ARGS("0", "n\\\\ud83d")
          ARGS("0", "\\\\ude00\\\"}") STOP("0") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read',"
          "'arguments':{'a':'x\\n\\ud83d\\ude00'}}]",
          LLM_CALLS },
        { "arguments cut by the output limit", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "{\\\"path\\\": \\\"/x\\\", \\\"text\\\": \\\"ab")
          STOP("0") REASON("max_tokens") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_LENGTH },
        { "whole arguments before the output limit", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "{\\\"path\\\": \\\"/x\\\"}") STOP("0")
          REASON("max_tokens") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_LENGTH },
        { "malformed arguments", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "{\\\"path\\\": /x}") STOP("0") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_CALLS },
        { "arguments that are no object", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "[1]") STOP("0") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_CALLS },
        { "thinking, its signature, redacted thinking, omitted thinking", &anthropic_wire,
          START BLOCK("0", "{'type':'thinking','thinking':'','signature':''}")
          DELTA("0", "{'type':'thinking_delta','thinking':'Let me '}")
          DELTA("0", "{'type':'thinking_delta','thinking':'see.'}")
          DELTA("0", "{'type':'signature_delta','signature':'c2ln'}") STOP("0")
          BLOCK("1", "{'type':'redacted_thinking','data':'ZGF0YQ=='}") STOP("1")
          BLOCK("2", "{'type':'thinking','thinking':'','signature':''}")
          DELTA("2", "{'type':'signature_delta','signature':'b25seQ=='}") STOP("2")
          BLOCK("3", TOOL) STOP("3") REASON("tool_use") END,
          "[{'type':'thinking','thinking':'Let me see.','thinkingSignature':'c2ln'},"
          "{'type':'thinking','thinking':'','thinkingSignature':'ZGF0YQ==','redacted':true},"
          "{'type':'thinking','thinking':'','thinkingSignature':'b25seQ=='},"
          "{'type':'toolCall','id':'toolu_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "parallel calls, their pieces mixed", &anthropic_wire,
          START BLOCK("0", TOOL) BLOCK("1", "{'type':'tool_use','id':'toolu_2','name':'bash',"
          "'input':{}}")
          ARGS("1", "{\\\"b\\\"") ARGS("0", "{\\\"a\\\":") ARGS("1", ":2}") ARGS("0", "1}")
          STOP("0") STOP("1") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{'a':1}},"
          "{'type':'toolCall','id':'toolu_2','name':'bash','arguments':{'b':2}}]", LLM_CALLS },
        { "unknown events, deltas and blocks", &anthropic_wire,
          START "{'type':'ping'}\n{'type':'something_new','x':[1]}\n"
          BLOCK("0", "{'type':'server_tool_use','id':'s','name':'web','input':{}}") STOP("0")
          BLOCK("1", "{'type':'text','text':''}") DELTA("1", "{'type':'citations_delta',"
          "'citation':{}}")
          DELTA("1", "{'type':'new_delta','text':'no'}") DELTA("1", "{'type':'text_delta',"
          "'text':'Hi'}")
          STOP("1") REASON("end_turn") END,
          "[{'type':'other','raw':{'type':'server_tool_use','id':'s','name':'web','input':{}}},"
          "{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "blank text", &anthropic_wire,
          START BLOCK("0", "{'type':'text','text':''}") DELTA("0", "{'type':'text_delta',"
          "'text':' \\n '}")
          STOP("0") BLOCK("1", TOOL) STOP("1") REASON("tool_use") END,
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "an error in the middle", &anthropic_wire,
          START BLOCK("0", "{'type':'text','text':'Hal'}")
          "{'type':'error','error':{'type':'overloaded_error','message':'Overloaded'},"
          "'request_id':'r'}\n",
          "[{'type':'text','text':'Hal'}]", LLM_GOES_ON, true, ERR_LIMIT },
        { "closed without message_stop", &anthropic_wire,
          START BLOCK("0", TOOL) ARGS("0", "{}") STOP("0") REASON("tool_use"),
          "[{'type':'toolCall','id':'toolu_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_CALLS, true },
        { "a refusal", &anthropic_wire,
          START "{'type':'message_delta','delta':{'stop_reason':'refusal','stop_details':"
          "{'category':'cyber','explanation':'no'}},'usage':{'output_tokens':1}}\n" END,
          "[]", LLM_FILTERED },
        { "a pause", &anthropic_wire,
          START BLOCK("0", "{'type':'text','text':'wait'}") STOP("0") REASON("pause_turn") END,
          "[{'type':'text','text':'wait'}]", LLM_PAUSED },
        { "a full window", &anthropic_wire,
          START REASON("model_context_window_exceeded") END, "[]", LLM_FULL },
        { "a new word", &anthropic_wire,
          START BLOCK("0", "{'type':'text','text':'Hi'}") STOP("0") REASON("bored") END,
          "[{'type':'text','text':'Hi'}]", LLM_STOPPED },
};

#define C(delta) "{'id':'chatcmpl-1','choices':[{'index':0,'delta':" delta "," \
        "'finish_reason':null}],'usage':null}\n"
#define F(reason) "{'choices':[{'index':0,'delta':{},'finish_reason':'" reason "'}]}\n"
#define U "{'choices':[],'usage':{'prompt_tokens':9,'completion_tokens':4}}\n"
#define D "[DONE]\n"
#define CALL(i, id, name, args) "{'tool_calls':[{'index':" i ",'id':'" id "'," \
        "'type':'function','function':{'name':'" name "','arguments':'" args "'}}]}"
#define MORE(i, args) "{'tool_calls':[{'index':" i ",'function':{'arguments':'" args "'}}]}"

static const struct stream chat[] = {
        { "too many requests, in the middle", &openai_wire,
          C("{'content':'Hel'}") "{'error':{'code':429,'message':'slow down'}}\n",
          "[{'type':'text','text':'Hel'}]", LLM_GOES_ON, true, ERR_LIMIT },
        { "overloaded, in the middle", &openai_wire,
          "{'error':{'type':'overloaded_error','message':'later'}}\n", "[]", LLM_GOES_ON, true,
          ERR_LIMIT },
        { "another error in the middle", &openai_wire,
          "{'error':{'code':502,'message':'gone'}}\n", "[]", LLM_GOES_ON, true, ERR_NET },
        { "text, usage in a chunk of its own", &openai_wire,
          C("{'role':'assistant','content':''}") C("{'content':'Hel'}") C("{'content':'lo'}")
          F("stop") U D,
          "[{'type':'text','text':'Hello'}]", LLM_STOPPED },
        { "[DONE] missing", &openai_wire, C("{'content':'Hi'}") F("stop") U,
          "[{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "neither [DONE] nor a reason", &openai_wire, C("{'content':'Hi'}"),
          "[{'type':'text','text':'Hi'}]", LLM_GOES_ON, true },
        { "a call in pieces", &openai_wire,
          C(CALL("0", "call_1", "read", "")) C(MORE("0", "{\\\"a\\\"")) C(MORE("0", ":1}"))
          F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{'a':1}}]", LLM_CALLS },
        { "two calls with the same index", &openai_wire,
          C(CALL("0", "call_1", "read", "{\\\"x\\\":1}")) C(CALL("0", "call_2", "bash",
          "{\\\"y\\\":2}"))
          F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{'x':1}},"
          "{'type':'toolCall','id':'call_2','name':'bash','arguments':{'y':2}}]", LLM_CALLS },
        { "the same id in every piece", &openai_wire,
          C(CALL("0", "call_1", "read", "{\\\"a\\\"")) C(CALL("0", "call_1", "", ":1}"))
          F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{'a':1}}]", LLM_CALLS },
        { "calls without index", &openai_wire,
          C("{'tool_calls':[{'id':'a','function':{'name':'read','arguments':'{'}}]}")
          C("{'tool_calls':[{'function':{'arguments':'}'}}]}")
          C("{'tool_calls':[{'id':'b','function':{'name':'bash','arguments':'{}'}}]}")
          F("tool_calls") D,
          "[{'type':'toolCall','id':'a','name':'read','arguments':{}},"
          "{'type':'toolCall','id':'b','name':'bash','arguments':{}}]", LLM_CALLS },
        { "a first index of 1", &openai_wire,
          C(CALL("1", "call_1", "read", "{}")) F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "parallel calls, their pieces mixed", &openai_wire,
          C(CALL("0", "call_1", "read", "")) C(CALL("1", "call_2", "bash", "")) C(MORE("1",
          "{\\\"b\\\":"))
          C(MORE("0", "{\\\"a\\\":1}")) C(MORE("1", "2}")) F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{'a':1}},"
          "{'type':'toolCall','id':'call_2','name':'bash','arguments':{'b':2}}]", LLM_CALLS },
        { "empty arguments", &openai_wire, C(CALL("0", "call_1", "read", "")) F("tool_calls") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "calls and the reason stop", &openai_wire, C(CALL("0", "call_1", "read", "{}"))
        F("stop") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{}}]", LLM_CALLS },
        { "a call cut by the output limit", &openai_wire,
          C(CALL("0", "call_1", "read", "{\\\"path\\\":\\\"/x\\\",\\\"te")) F("length") D,
          "[{'type':'toolCall','id':'call_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_LENGTH },
        { "reasoning_content", &openai_wire,
          C("{'reasoning_content':'hm','content':null}") C("{'reasoning_content':'m'}")
          C("{'content':'Hi'}")
          F("stop") D,
          "[{'type':'thinking','thinking':'hmm','thinkingSignature':'reasoning_content'},"
          "{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "two names for the same thinking", &openai_wire,
          C("{'reasoning_content':'','reasoning':'hm','reasoning_text':'hm'}")
          C("{'content':'Hi'}") F("stop") D,
          "[{'type':'thinking','thinking':'hm','thinkingSignature':'reasoning'},"
          "{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "details of reasoning in pieces", &openai_wire,
          C("{'reasoning':'a','reasoning_details':[{'type':'reasoning.text','text':'a',"
          "'index':0}]}")
          C("{'reasoning':'b','reasoning_details':[{'type':'reasoning.text','text':'b',"
          "'signature':'s','index':0}]}")
          C("{'reasoning_details':[{'type':'reasoning.encrypted','data':'e','index':1}]}")
          C("{'content':'Hi'}") F("stop") D,
          "[{'type':'thinking','thinking':'ab',"
          "'thinkingSignature':'[{\\\"type\\\":\\\"reasoning.text\\\","
          "\\\"text\\\":\\\"ab\\\",\\\"index\\\":0,\\\"signature\\\":\\\"s\\\"},"
          "{\\\"type\\\":\\\"reasoning.encrypted\\\","
          "\\\"data\\\":\\\"e\\\",\\\"index\\\":1}]'},{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "a refusal in words", &openai_wire, C("{'refusal':'No.'}") F("stop") D,
          "[{'type':'text','text':'No.'}]", LLM_STOPPED },
        { "a filter", &openai_wire, C("{'content':'Ha'}") F("content_filter") D,
          "[{'type':'text','text':'Ha'}]", LLM_FILTERED },
        { "another word for the end", &openai_wire, C("{'content':'Hi'}") F("end") D,
          "[{'type':'text','text':'Hi'}]", LLM_STOPPED },
        { "the old word for calls", &openai_wire, C(CALL("0", "c", "read", "{}"))
        F("function_call") D,
          "[{'type':'toolCall','id':'c','name':'read','arguments':{}}]", LLM_CALLS },
        { "a network error", &openai_wire, C("{'content':'Hi'}") F("network_error"),
          "[{'type':'text','text':'Hi'}]", LLM_GOES_ON, true, ERR_NET },
        { "an error within the stream", &openai_wire, C("{'content':'Hi'}")
        "{'error':{'message':'boom'}}\n",
          "[{'type':'text','text':'Hi'}]", LLM_GOES_ON, true, ERR_NET },
};
#define CREATED "{'type':'response.created','response':{'id':'resp_1','status':'in_progress'}}\n"
#define ADDED(i, item) "{'type':'response.output_item.added','output_index':" i ",'item':" \
        item "}\n"
#define DONE(i, item) "{'type':'response.output_item.done','output_index':" i ",'item':" item "}\n"
#define PIECE(what, i, delta) "{'type':'response." what ".delta','output_index':" i "," \
        "'delta':'" delta "'}\n"
#define COMPLETED "{'type':'response.completed','response':{'id':'resp_1'," \
        "'status':'completed','output':[]}}\n"
#define MESSAGE(text) "{'type':'message','id':'msg_1','role':'assistant'," \
        "'content':[{'type':'output_text','text':'" text "'}]}"
#define FUNCTION(args) "{'type':'function_call','id':'fc_1','call_id':'call_1','name':'read'," \
        "'arguments':'" args "'}"
#define REASONING "{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text'," \
        "'text':'Hm'}],'encrypted_content':'e'}"
#define REASONING_TEXT "{\\\"type\\\":\\\"reasoning\\\",\\\"id\\\":\\\"rs_1\\\"," \
        "\\\"summary\\\":[{\\\"type\\\":\\\"summary_text\\\",\\\"text\\\":\\\"Hm\\\"}]," \
        "\\\"encrypted_content\\\":\\\"e\\\"}"
#define TEXT_SIGNATURE "'textSignature':'{\\\"v\\\":1,\\\"id\\\":\\\"msg_1\\\"}'"

static const struct stream responses[] = {
        { "text", &responses_wire,
          CREATED ADDED("0", "{'type':'message','id':'msg_1','content':[]}")
          PIECE("output_text", "0", "Hel")
          PIECE("output_text", "0", "lo") DONE("0", MESSAGE("Hello")) COMPLETED,
          "[{'type':'text','text':'Hello'," TEXT_SIGNATURE "}]", LLM_STOPPED },
        { "only whole items", &responses_wire, CREATED DONE("0", MESSAGE("Hello")) COMPLETED,
          "[{'type':'text','text':'Hello'," TEXT_SIGNATURE "}]", LLM_STOPPED },
        { "only the completed response", &responses_wire,
          CREATED "{'type':'response.completed','response':{'id':'resp_1',"
          "'status':'completed','output':["
          REASONING "," MESSAGE("Hello") "]}}\n",
          "[{'type':'thinking','thinking':'Hm','thinkingSignature':'" REASONING_TEXT "'},"
          "{'type':'text','text':'Hello'," TEXT_SIGNATURE "}]", LLM_STOPPED },
        { "the phase of a text", &responses_wire,
          CREATED DONE("0", "{'type':'message','id':'msg_1','phase':'commentary',"
          "'content':[{'type':'output_text','text':'Hi'}]}")
          COMPLETED,
          "[{'type':'text','text':'Hi','textSignature':"
          "'{\\\"v\\\":1,\\\"id\\\":\\\"msg_1\\\",\\\"phase\\\":\\\"commentary\\\"}'}]",
          LLM_STOPPED },
        { "reasoning and a call", &responses_wire,
          CREATED ADDED("0", "{'type':'reasoning','id':'rs_1','summary':[],"
          "'encrypted_content':'half'}")
          "{'type':'response.reasoning_summary_part.added','output_index':0}\n"
          PIECE("reasoning_summary_text", "0", "Hm") DONE("0", REASONING)
          ADDED("1", FUNCTION("")) PIECE("function_call_arguments", "1", "{\\\"a\\\"")
          PIECE("function_call_arguments", "1", ":1}")
          "{'type':'response.function_call_arguments.done','output_index':1,"
          "'arguments':'{\\\"a\\\":1}'}\n"
          DONE("1", FUNCTION("{\\\"a\\\":1}")) COMPLETED,
          "[{'type':'thinking','thinking':'Hm','thinkingSignature':'" REASONING_TEXT "'},"
          "{'type':'toolCall','id':'call_1|fc_1','name':'read','arguments':{'a':1}}]", LLM_CALLS },
        { "the full arguments are right", &responses_wire,
          CREATED ADDED("0", FUNCTION("")) PIECE("function_call_arguments", "0", "{\\\"a\\\":")
          DONE("0", FUNCTION("{\\\"a\\\":2}")) COMPLETED,
          "[{'type':'toolCall','id':'call_1|fc_1','name':'read','arguments':{'a':2}}]", LLM_CALLS },
        { "a refusal in words", &responses_wire,
          CREATED ADDED("0", "{'type':'message','id':'msg_1'}") PIECE("refusal", "0", "No.")
          DONE("0", "{'type':'message','id':'msg_1','content':[{'type':'refusal',"
          "'refusal':'No.'}]}") COMPLETED,
          "[{'type':'text','text':'No.'," TEXT_SIGNATURE "}]", LLM_STOPPED },
        { "a call cut by the output limit", &responses_wire,
          CREATED ADDED("0", FUNCTION("")) PIECE("function_call_arguments", "0",
          "{\\\"path\\\":\\\"/x\\\"}")
          "{'type':'response.incomplete','response':{'id':'resp_1','status':'incomplete',"
          "'output':[],"
          "'incomplete_details':{'reason':'max_output_tokens'}}}\n",
          "[{'type':'toolCall','id':'call_1|fc_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_LENGTH },
        { "a filter", &responses_wire,
          CREATED "{'type':'response.incomplete','response':{'id':'resp_1','status':'incomplete',"
          "'incomplete_details':{'reason':'content_filter'}}}\n", "[]", LLM_FILTERED },
        { "unknown events and items", &responses_wire,
          CREATED ADDED("0", "{'type':'web_search_call','id':'ws_1'}") DONE("0",
          "{'type':'web_search_call','id':'ws_1'}")
          "{'type':'response.something.new','x':1}\n{'type':'keepalive'}\n" DONE("1",
          MESSAGE("Hi")) COMPLETED,
          "[{'type':'text','text':'Hi'," TEXT_SIGNATURE "}]", LLM_STOPPED },
        { "a failed response", &responses_wire,
          CREATED "{'type':'response.failed','response':{'id':'resp_1','status':'failed',"
          "'error':{'code':'rate_limit_exceeded','message':'slow down'}}}\n", "[]",
          LLM_GOES_ON, true, ERR_LIMIT },
        { "a cancelled response", &responses_wire,
          CREATED "{'type':'response.failed','response':{'id':'resp_1','status':'cancelled',"
          "'error':null}}\n", "[]", LLM_GOES_ON, true, ERR_NET },
        { "a bare error", &responses_wire,
          CREATED "{'type':'error','code':'server_error','message':'boom','param':null}\n",
          "[]", LLM_GOES_ON, true, ERR_NET },
        { "closed too early", &responses_wire,
          CREATED DONE("0", FUNCTION("{}")),
          "[{'type':'toolCall','id':'call_1|fc_1','name':'read','arguments':{},'incomplete':true}]",
          LLM_GOES_ON, true },
};
/* clang-format on */

/* As the service would send them; every second one over two data lines and with CRLF. */
static void write_stream(const char *events, struct buf *out)
{
        for (int i = 0; *events; i++) {
                size_t n = strcspn(events, "\n");
                const char *end = i % 2 ? "\r\n" : "\n";

                buf_addf(out, ": keep alive%s%s", end, end);
                buf_addstr(out, "data: ");
                for (size_t k = 0; k < n; k++) {
                        buf_addch(out, (char)(events[k] == '\'' ? '"' : events[k]));
                        if (i % 2 && k == 0 && events[k] == '{')
                                buf_addf(out, "%sdata: ", end);
                }
                buf_addf(out, "%s%s", end, end);
                events += n + (events[n] == '\n');
        }
}

static void read_one(const struct stream *s, size_t piece)
{
        struct llm_reader r;
        struct buf bytes;
        json_t *content;
        int rc = 0;

        buf_init(&bytes, 0);
        write_stream(s->events, &bytes);
        llm_reader_init(&r, s->wire, NULL, NULL);
        for (size_t at = 0; at < bytes.len && rc == 0; at += piece)
                rc = llm_reader_stream(&r, bytes.data + at,
                                       bytes.len - at < piece ? bytes.len - at : piece);
        content = llm_reader_content(&r, NULL);
        assert_int_equal(r.failure.kind, s->fails);
        assert_json(content, s->content);
        assert_int_equal(r.stop, s->stop);
        assert_int_equal(llm_reader_is_complete(&r), !s->incomplete);
        json_decref(content);
        llm_reader_release(&r);
        buf_release(&bytes);
}

static void read_all(const struct stream *rows, size_t count)
{
        static const size_t pieces[] = { 1, 7, 13, 1 << 20 };

        for (size_t i = 0; i < count; i++) {
                print_message("             %s\n", rows[i].what);
                for (size_t k = 0; k < COUNT(pieces); k++)
                        read_one(&rows[i], pieces[k]);
        }
}

static void streams_of_the_messages_api_become_blocks(void **state)
{
        (void)state;
        read_all(anthropic, COUNT(anthropic));
}

static void streams_of_chat_completions_become_blocks(void **state)
{
        (void)state;
        read_all(chat, COUNT(chat));
}

static void streams_of_responses_become_blocks(void **state)
{
        (void)state;
        read_all(responses, COUNT(responses));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(streams_of_the_messages_api_become_blocks),
                cmocka_unit_test(streams_of_chat_completions_become_blocks),
                cmocka_unit_test(streams_of_responses_become_blocks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
