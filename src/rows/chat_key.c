#include "rows/chat_key.h"

#include "base/mem.h"

#define SEPARATOR "\x1f" /* no platform has it in an id */

char *chat_key_text(const struct chat_key *key)
{
        return mem_printf("%s" SEPARATOR "%s" SEPARATOR "%s", key->adapter ? key->adapter : "",
                          key->channel ? key->channel : "", key->thread ? key->thread : "");
}
