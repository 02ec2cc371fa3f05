#include "core/local.h"
bool hfi_local_open(hf_client *client){(void)client;return true;}
void hfi_local_free(hf_client *client){(void)client;}
bool hfi_loader_is_inside(const hf_client *client){(void)client;return false;}
