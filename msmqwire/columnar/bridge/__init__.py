"""Between the compiled scan and the generic reader: what one hands to the other, and gets back."""
