/* plugin_none.c - a shared object that is no plug-in. */
int plugin_none(void);

int plugin_none(void)
{
	return 1;
}
