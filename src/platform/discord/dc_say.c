#include "base/jsonw.h"
#include "platform/discord/dc_gateway_private.h"

void dc_say_heartbeat(struct buf *b, int64_t seq)
{
        jsonw_open(b, '{');
        jsonw_int(b, "op", DC_OP_HEARTBEAT);
        if (seq < 0)
                jsonw_null(b, "d");
        else
                jsonw_int(b, "d", seq);
        jsonw_close(b, '}');
}

void dc_say_identify(struct buf *b, const struct dc_gateway_options *o, unsigned shard,
                     unsigned shards)
{
        jsonw_open(b, '{');
        jsonw_int(b, "op", DC_OP_IDENTIFY);
        jsonw_open_member(b, "d", '{');
        jsonw_str(b, "token", secret_reveal(o->token));
        jsonw_int(b, "intents", o->intents);
        jsonw_open_member(b, "properties", '{');
        jsonw_str(b, "os", "linux");
        jsonw_str(b, "browser", "dragoman");
        jsonw_str(b, "device", "dragoman");
        jsonw_close(b, '}');
        jsonw_open_member(b, "shard", '[');
        jsonw_int(b, NULL, shard);
        jsonw_int(b, NULL, shards);
        jsonw_close(b, ']');
        jsonw_close(b, '}');
        jsonw_close(b, '}');
}

void dc_say_resume(struct buf *b, const struct dc_gateway_options *o, const char *session,
                   int64_t seq)
{
        jsonw_open(b, '{');
        jsonw_int(b, "op", DC_OP_RESUME);
        jsonw_open_member(b, "d", '{');
        jsonw_str(b, "token", secret_reveal(o->token));
        jsonw_str(b, "session_id", session);
        jsonw_int(b, "seq", seq);
        jsonw_close(b, '}');
        jsonw_close(b, '}');
}
