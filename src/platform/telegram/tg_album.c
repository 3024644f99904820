/*
 * Albums whose parts come one by one.
 *
 * Telegram posts the next part of an album when the last one has been acknowledged, and we
 * acknowledge what is stored. So each part becomes an event of its own, and the road gathers them
 * in one turn; so does a part that is polled too late to be joined to the others. Only one part
 * carries the caption, and with it the mention: the others are addressed to the bot because that
 * one was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "platform/telegram/telegram.h"

void tg_album_joins(struct telegram *tg, const struct tg_item *item, struct incoming *in)
{
        struct tg_albums *known = &tg->albums;
        unsigned i = 0;

        while (i < TG_ALBUMS &&
               !(known->items[i].id && strcmp(known->items[i].id, item->album) == 0 &&
                 strcmp(known->items[i].chat, item->chat) == 0))
                i++;
        if (i == TG_ALBUMS) {
                i = known->next;
                known->next = (known->next + 1) % TG_ALBUMS;
                free(known->items[i].chat);
                free(known->items[i].id);
                known->items[i].chat = mem_strdup(item->chat);
                known->items[i].id = mem_strdup(item->album);
                known->items[i].is_mention = known->items[i].is_reply = false;
        }
        in->is_mention = known->items[i].is_mention = known->items[i].is_mention || in->is_mention;
        in->is_reply = known->items[i].is_reply = known->items[i].is_reply || in->is_reply;
}

void tg_album_part(struct telegram *tg, struct tg_item *item)
{
        item->events->more_follows = true;
        tg_album_joins(tg, item, item->events);
}

void tg_albums_release(struct telegram *tg)
{
        for (unsigned i = 0; i < TG_ALBUMS; i++) {
                free(tg->albums.items[i].chat);
                free(tg->albums.items[i].id);
        }
}
