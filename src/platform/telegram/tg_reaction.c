/* Bots may react with a fixed set of emoji; others are mapped to the nearest one. */
#include <string.h>

#include "base/mem.h"
#include "platform/telegram/telegram.h"

/* From the description of ReactionTypeEmoji, Bot API 10.1. */
static const char *const allowed[] = {
        "❤",    "👍",    "👎",    "🔥",    "🥰", "👏",    "😁",          "🤔", "🤯",
        "😱",    "🤬", "😢",    "🎉",    "🤩", "🤮", "💩",          "🙏",    "👌",
        "🕊", "🤡", "🥱", "🥴", "😍",    "🐳",    "❤‍🔥", "🌚",    "🌭",
        "💯",    "🤣", "⚡",    "🍌",    "🏆",    "💔",    "🤨",       "😐",    "🍓",
        "🍾", "💋",    "🖕", "😈",    "😴",    "😭",    "🤓",       "👻",    "👨‍💻",
        "👀",    "🎃",    "🙈",    "😇",    "😨",    "🤝", "✍",          "🤗", "🫡",
        "🎅",    "🎄",    "☃",    "💅",    "🤪", "🗿",    "🆒",          "💘",    "🙉",
        "🦄", "😘",    "💊",    "🙊",    "😎",    "👾",    "🤷‍♂", "🤷", "🤷‍♀",
        "😡",
};

/* clang-format off */
static const struct {
        const char *wanted, *instead;
} nearest[] = {
        { "✅", "👌" }, { "✔", "👌" }, { "☑", "👌" }, { "🆗", "👌" }, { "❌", "👎" }, { "🚫", "👎" },
        { "⛔", "👎" }, { "❗", "😱" }, { "⚠", "😨" }, { "❓", "🤔" }, { "⏳", "🤔" }, { "⌛", "🤔" },
        { "💭", "🤔" }, { "🔬", "🤓" }, { "🔍", "👀" }, { "🔎", "👀" }, { "🧪", "🤓" }, { "📝", "✍" },
        { "✏", "✍" }, { "🛠", "👨‍💻" }, { "🔧", "👨‍💻" }, { "⚙", "👨‍💻" }, { "🤖", "👾" }, { "🚀", "🔥" },
        { "⭐", "🤩" }, { "🌟", "🤩" }, { "😀", "😁" }, { "😃", "😁" }, { "😄", "😁" }, { "😂", "🤣" },
        { "🙂", "😁" }, { "😊", "🥰" }, { "😞", "😢" }, { "😔", "😢" }, { "🥳", "🎉" }, { "🎊", "🎉" },
        { "💡", "⚡" }, { "💪", "🏆" }, { "👋", "🤗" }, { "💀", "👻" }, { "💤", "😴" }, { "✨", "🤩" },
        { "📨", "🕊" },
};
/* clang-format on */

/* U+FE0F, "show as emoji"; Telegram's list does not have it */
#define SELECTOR "\xef\xb8\x8f"

/* Is it the same emoji, apart from variation selectors? */
static bool same(const char *a, const char *b)
{
        size_t n = strlen(SELECTOR);

        for (;;) {
                while (strncmp(a, SELECTOR, n) == 0)
                        a += n;
                while (strncmp(b, SELECTOR, n) == 0)
                        b += n;
                if (*a != *b)
                        return false;
                if (*a == '\0')
                        return true;
                a++;
                b++;
        }
}

const char *tg_reaction(const char *emoji)
{
        for (size_t i = 0; i < COUNT(allowed); i++)
                if (same(allowed[i], emoji))
                        return allowed[i];
        for (size_t i = 0; i < COUNT(nearest); i++)
                if (same(nearest[i].wanted, emoji))
                        return nearest[i].instead;
        return NULL;
}
