/* Is refused a pool that was open when the machine went down, and makes a new one of what is whole in it. */
#include <firn.h>

#include <stdio.h>
#include <string.h>

static void tell(const char *what, void *context)
{
	printf("lost: %s\n", what);
	++*(int *)context;
}

int main(int count, char **words)
{
	int losses = 0;
	firn_salvaged salvaged;
	firn_pool *pool;
	if (count != 3)
		return 2;
	printf("%s\n", firn_status_name(firn_open(words[1], NULL, &pool)));
	printf("%s\n", strstr(firn_last_message(), "firn_salvage") != NULL ? "names it" : firn_last_message());
	firn_status status = firn_salvage(words[1], words[2], NULL, tell, &losses, &salvaged);
	printf("%s\n", status == FIRN_OK ? "salvaged" : firn_last_message());
	printf("%d objects of %d bytes, %d losses\n", (int)salvaged.objects, (int)salvaged.bytes, losses);
	printf("%s\n", firn_status_name(firn_salvage(words[1], words[2], NULL, NULL, NULL, NULL)));
	return 0;
}
